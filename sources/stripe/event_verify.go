package stripe

import (
	"crypto/hmac"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	stripego "github.com/stripe/stripe-go/v82"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

const (
	signatureHeader = "Stripe-Signature"
	// maxSignatures bounds what one delivery may let us compare. Stripe sends one
	// signature for each active secret.
	maxSignatures = 16
)

var _ sources.Receiver = (*Source)(nil)

// Verify checks a delivery and reads its envelope. Any of the secrets may have made any
// of its v1 signatures, so that a secret can be rolled. The signed time may differ from
// ours by the tolerance, either way; stripe-go looks only for old ones, and refuses
// events of other API versions, which are welcome here. Age is looked at after the
// signature: only Stripe's own deliveries can say that a clock is wrong.
func (s *Source) Verify(header http.Header, body []byte, now time.Time) (recon.Event, error) {
	signed, err := readSignature(header)
	if err != nil {
		return recon.Event{}, &sources.Refusal{Why: sources.BadSignature, Err: err}
	}
	if err := s.checkSignature(signed, body); err != nil {
		return recon.Event{}, &sources.Refusal{Why: sources.BadSignature, Err: err}
	}
	if off := now.Sub(signed.at); off > s.tolerance || off < -s.tolerance {
		return recon.Event{}, &sources.Refusal{Why: sources.TooOld, Err: errors.New("signed at " +
			signed.at.UTC().Format(time.RFC3339) + ", which is more than " + s.tolerance.String() +
			" from our clock; check the clock of this machine")}
	}
	e, err := s.envelope(body, now)
	if err != nil {
		return recon.Event{}, &sources.Refusal{Why: sources.NotReadable, Err: err}
	}
	e.Signed = true
	return e, nil
}

// signature is what the header of a delivery says.
type signature struct {
	at    time.Time
	marks [][]byte // of scheme v1
}

// readSignature reads "t=1700000000,v1=abc…,v1=def…,v0=…". What is not of scheme v1 is
// passed over, a signature that is no hex too, since another one may be right.
func readSignature(header http.Header) (signature, error) {
	lines := header.Values(signatureHeader)
	switch {
	case len(lines) == 0:
		return signature{}, errors.New("the delivery has no header " + signatureHeader)
	case len(lines) > 1:
		return signature{}, errors.New("the delivery has the header " + signatureHeader + " more than once")
	}
	var out signature
	for part := range strings.SplitSeq(lines[0], ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		switch {
		case !ok:
			return signature{}, errors.New("the header " + signatureHeader + " is not a list of name=value")
		case name == "t":
			at, err := strconv.ParseUint(value, 10, 63)
			if err != nil || at < minTime || at >= maxTime || !out.at.IsZero() {
				return signature{}, errors.New("the header " + signatureHeader + " does not have exactly one time t, in seconds since 1970")
			}
			out.at = time.Unix(int64(at), 0)
		case name == "v1" && len(out.marks) == maxSignatures:
			return signature{}, errors.New("the header " + signatureHeader + " has more signatures than Stripe sends")
		case name == "v1":
			if mark, err := hex.DecodeString(value); err == nil {
				out.marks = append(out.marks, mark)
			}
		}
	}
	switch {
	case out.at.IsZero():
		return signature{}, errors.New("the header " + signatureHeader + " has no time t")
	case len(out.marks) == 0:
		return signature{}, errors.New("the header " + signatureHeader + " has no signature of scheme v1")
	}
	return out, nil
}

// checkSignature compares in constant time.
func (s *Source) checkSignature(signed signature, body []byte) error {
	if len(s.secrets) == 0 {
		return errors.New("the source has no webhook secret; name its file in settings.webhook.secret_files")
	}
	for _, secret := range s.secrets {
		want := stripego.ComputeSignature(signed.at, body, secret.Reveal())
		for _, mark := range signed.marks {
			if hmac.Equal(want, mark) {
				return nil
			}
		}
	}
	return errors.New("no signature was made with a secret of this source; compare settings.webhook.secret_files with the endpoint's signing secret")
}
