package stripe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/seed-1c4f4dc2/reconciler/attempt"
)

// What Stripe takes of metadata and keys. It refuses more with a 400, and an empty value
// removes the key.
const (
	maxKey       = 255
	maxMetadata  = 50
	maxMetaName  = 40
	maxMetaValue = 500
)

// Sending is what one attempt sends, as claim_operation answered it.
type Sending struct {
	Key string
	// Marker and Reference are the name and value that the created object must bear in
	// its metadata, so that it is found again. Empty, for an endpoint that takes none:
	// the action's policy must then not name "reference" among its marks.
	Marker, Reference string
	// InDoubt: an earlier attempt may have had its effect.
	InDoubt bool
}

// Sent tells what came of it.
type Sent struct {
	sending  Sending
	exchange *attempt.Exchange
}

// Begin gives the context for one call of a stripe-go client that has [attempt.Transport]
// under it. The call is made by the caller; nothing is sent here. A call that bears
// another key than the attempt's (stripe-go makes one up when none is set), lacks the
// marker, or has metadata that Stripe refuses does not leave this machine.
func Begin(ctx context.Context, s Sending) (context.Context, *Sent) {
	ctx, x := attempt.Begin(ctx, s.check)
	return ctx, &Sent{sending: s, exchange: x}
}

func (s Sending) check(r *http.Request, body []byte) error {
	key := r.Header.Get("Idempotency-Key")
	switch {
	case s.Key == "" || strings.TrimSpace(s.Key) != s.Key || len(s.Key) > maxKey:
		return fmt.Errorf("the attempt's key cannot be sent to Stripe: it must have 1 to %d characters and no outer spaces", maxKey)
	case key != s.Key:
		return errors.New("the request bears another idempotency key than its attempt: set it with params.SetIdempotencyKey")
	case !strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded"):
		return nil
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return errors.New("the request's form cannot be read")
	}
	metadata := map[string]string{}
	for name, values := range form {
		if inner, ok := strings.CutPrefix(name, "metadata["); ok && strings.HasSuffix(inner, "]") {
			metadata[strings.TrimSuffix(inner, "]")] = strings.Join(values, "")
		}
	}
	if s.Marker != "" && metadata[s.Marker] != s.Reference {
		return fmt.Errorf("the request does not bear its operation in metadata %q: add it with params.AddMetadata, or the effect cannot be found again", s.Marker)
	}
	return CheckMetadata(metadata)
}

// CheckMetadata says before a call what Stripe would refuse of metadata. It names keys
// and never values.
func CheckMetadata(metadata map[string]string) error {
	if len(metadata) > maxMetadata {
		return fmt.Errorf("metadata has %d keys; Stripe takes %d", len(metadata), maxMetadata)
	}
	for name, value := range metadata {
		switch {
		case name == "" || utf8.RuneCountInString(name) > maxMetaName:
			return fmt.Errorf("metadata key %.60q has %d characters; Stripe takes 1 to %d", name, utf8.RuneCountInString(name), maxMetaName)
		case strings.ContainsAny(name, "[]"):
			return fmt.Errorf("metadata key %.60q has a square bracket, which Stripe refuses", name)
		case value == "":
			return fmt.Errorf("metadata %.60q is empty, which removes the key at Stripe: leave it out", name)
		case utf8.RuneCountInString(value) > maxMetaValue:
			return fmt.Errorf("metadata %.60q has a value of %d characters; Stripe takes %d", name, utf8.RuneCountInString(value), maxMetaValue)
		}
	}
	return nil
}
