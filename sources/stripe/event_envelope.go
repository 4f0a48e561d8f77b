package stripe

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// maxDepth bounds the nesting of an event. Objects that are expanded as deep as Stripe
// lets them stay far below it.
const maxDepth = 100

// Only texts of these shapes name an event, its type or its account. They go into
// tables, logs and metrics, where no control character may come.
var (
	eventIDs   = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,255}$`)
	eventTypes = regexp.MustCompile(`^[A-Za-z0-9_.\[\]-]{1,128}$`)
	versions   = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}(\.[a-z]{1,32})?$`)
)

// unknownType stands for a type or a version that is missing or is none.
const unknownType = "unknown"

// head is what is read of an event before anybody looks at its object: all that is done
// while its sender waits.
type head struct {
	ID       text    `json:"id"`
	Object   text    `json:"object"`
	Type     text    `json:"type"`
	Account  text    `json:"account"`
	Version  text    `json:"api_version"`
	Context  text    `json:"context"` // of a thin event: the account, or a path to it
	Livemode *bool   `json:"livemode"`
	Created  instant `json:"created"`
}

// event is what is read of an event, of whichever API version, and of a thin event,
// which names an object instead of showing it.
type event struct {
	head
	Request request `json:"request"`
	Data    struct {
		Object snapshot `json:"object"`
	} `json:"data"`
	Related struct {
		ID   text `json:"id"`
		Type text `json:"type"`
	} `json:"related_object"`
}

// snapshot is the object as it was when the event was made, in the API version of the
// account or the endpoint.
type snapshot struct {
	ID     text `json:"id"`
	Object text `json:"object"`
	raw    json.RawMessage
}

func (s *snapshot) UnmarshalJSON(b []byte) error {
	type bare snapshot
	_ = json.Unmarshal(b, (*bare)(s)) // what is no object has no id
	s.raw = bytes.Clone(b)
	return nil
}

// readEvent reads an event of a list.
func readEvent(raw []byte) (event, bool) {
	var e event
	err := json.Unmarshal(raw, &e)
	return e, err == nil && e.Object == kindEvent && eventIDs.MatchString(string(e.ID)) && e.Created != 0
}

// text is a JSON string; anything else is as good as none.
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*t = text(s)
	}
	return nil
}

// instant is seconds since 1970, or the text of a time as thin events have it; 0 where
// it is none of our time.
type instant int64

func (i *instant) UnmarshalJSON(b []byte) error {
	seconds, err := strconv.ParseInt(string(b), 10, 64)
	var at time.Time
	if err != nil && json.Unmarshal(b, &at) == nil {
		seconds = at.Unix()
	}
	if seconds >= minTime && seconds < maxTime {
		*i = instant(seconds)
	}
	return nil
}

// request is what made the event happen. Before 2017-05-25 it was the request's id
// alone; it is null for what Stripe did by itself.
type request struct {
	ID  string
	Key string
}

func (r *request) UnmarshalJSON(b []byte) error {
	var full struct {
		ID  text `json:"id"`
		Key text `json:"idempotency_key"`
	}
	var id text
	if json.Unmarshal(b, &full) != nil {
		_ = id.UnmarshalJSON(b) // never fails
		full.ID = id
	}
	if requestIDs.MatchString(string(full.ID)) {
		r.ID = string(full.ID)
	}
	if len(full.Key) <= maxText && !strings.ContainsRune(string(full.Key), 0) {
		r.Key = string(full.Key)
	}
	return nil
}

// envelope reads what is known of an event before anybody looks at its object. What the
// provider signed is kept even where it is odd: a body without an id is named by its
// hash, so that its repeats are one event, and one without a time by when it came.
func (s *Source) envelope(body []byte, now time.Time) (recon.Event, error) {
	if deeper(body, maxDepth) {
		return recon.Event{}, fmt.Errorf("the body is nested deeper than %d levels", maxDepth)
	}
	var e head
	if begin := bytes.TrimLeft(body, " \t\r\n"); len(begin) == 0 || begin[0] != '{' || json.Unmarshal(body, &e) != nil {
		return recon.Event{}, errors.New("the body is not the JSON of an event")
	}
	out := recon.Event{Source: s.name, System: s.system, ID: string(e.ID), Type: string(e.Type), Body: body}
	if !eventIDs.MatchString(out.ID) {
		sum := sha256.Sum256(body)
		out.ID = "sha256:" + hex.EncodeToString(sum[:])
	}
	if !eventTypes.MatchString(out.Type) {
		out.Type = unknownType
	}
	if out.Version = string(e.Version); !versions.MatchString(out.Version) {
		out.Version = unknownType
	}
	if out.CreatedAt = time.Unix(int64(e.Created), 0).UTC(); e.Created == 0 {
		out.CreatedAt = now.UTC().Truncate(time.Second)
	}
	out.Account, out.Mode = s.placeOf(e)
	return out, nil
}

// placeOf gives the account and mode that an event names. Stripe names the account for
// connected ones alone: an event without one is of the account that its endpoint
// belongs to, which is none of the connected. Empty: it does not say, or not
// understandably, and the source has not exactly one that it could be.
func (s *Source) placeOf(e head) (account, mode string) {
	if e.Livemode != nil {
		mode = modeTest
		if *e.Livemode {
			mode = modeLive
		}
	}
	own, inMode, modes := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, p := range s.places {
		modes[p.mode] = true
		if p.header == nil {
			own[p.account] = true
			inMode[p.account] = inMode[p.account] || mode == "" || p.mode == mode
		}
	}
	maps.DeleteFunc(inMode, func(_ string, in bool) bool { return !in })
	if len(inMode) == 0 {
		inMode = own // the account in the mode that the source does not have
	}
	return e.account(only(inMode)), orElse(mode, only(modes))
}

// account gives the one that the event names, or own where it names none.
func (e head) account(own string) string {
	named := string(e.Account)
	if named == "" {
		named = string(e.Context[strings.LastIndexByte(string(e.Context), '/')+1:])
	}
	switch {
	case named == "":
		return own
	case eventIDs.MatchString(named):
		return named
	}
	return ""
}

// only gives the only one of a set, else nothing.
func only(set map[string]bool) string {
	if len(set) != 1 {
		return ""
	}
	return slices.Collect(maps.Keys(set))[0]
}

// deeper reports whether a JSON text opens more than limit levels. It looks at no other
// rule of JSON.
func deeper(body []byte, limit int) bool {
	depth, quoted, escaped := 0, false, false
	for _, c := range body {
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped, quoted = c == '\\', c != '"'
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			if depth++; depth > limit {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}
