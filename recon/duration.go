package recon

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Duration is a span written as text, such as "30s", "15m", "72h" or "14d". It is
// written back in the largest single unit up to hours, a form that Go, YAML, JSON
// and PostgreSQL's interval all read the same way.
type Duration time.Duration

// Std gives the span as the standard library's type.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String writes d in its largest exact single unit: h, m, s or ms.
func (d Duration) String() string {
	t := time.Duration(d)
	switch {
	case t == 0:
		return "0s"
	case t%time.Hour == 0:
		return strconv.FormatInt(int64(t/time.Hour), 10) + "h"
	case t%time.Minute == 0:
		return strconv.FormatInt(int64(t/time.Minute), 10) + "m"
	case t%time.Second == 0:
		return strconv.FormatInt(int64(t/time.Second), 10) + "s"
	}
	return strconv.FormatInt(int64(t/time.Millisecond), 10) + "ms"
}

// ParseDuration reads a span of Go's units (h, m, s, ms) or of whole days ("14d").
// Spans below a millisecond and negative ones are refused: nothing here means them.
func ParseDuration(s string) (Duration, error) {
	var d time.Duration
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 15)
		if err != nil {
			return 0, fmt.Errorf("%q is not a duration; write it like 30s, 15m, 72h or 14d", s)
		}
		return Duration(time.Duration(n) * 24 * time.Hour), nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d%time.Millisecond != 0 {
		return 0, fmt.Errorf("%q is not a duration; write it like 30s, 15m, 72h or 14d", s)
	}
	return Duration(d), nil
}

// MarshalText implements encoding.TextMarshaler, so JSON and YAML hold text.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := ParseDuration(string(b))
	if err != nil {
		return err
	}
	*d = v
	return nil
}
