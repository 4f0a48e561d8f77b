// Package webhook tells findings to any program that takes a signed HTTP request: one
// POST of JSON for each notice, and one for each change of what was told.
//
// Every request carries a key by which a receiver drops repeats, and a signature over
// its time and its body. A lost answer is sent again under the same key, marked as a
// repeat, since no receiver can be asked whether it has it. The package never retries
// by itself; the errors say whether and when to. docs/webhook.md has what a receiver
// must know.
package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// The headers of a request.
const (
	// HeaderTimestamp is when the request was signed, in seconds since 1970.
	HeaderTimestamp = "Reconciler-Timestamp"
	// HeaderSignature is "v1=" and the HMAC-SHA256, in hex, over timestamp, ".", body.
	HeaderSignature = "Reconciler-Signature"
	// HeaderKey is the same for every try of one event, and for no other event.
	HeaderKey = "Idempotency-Key"
)

const (
	maxReply  = 64 << 10
	maxSecret = 4 << 10
)

// Notifier is one receiver.
type Notifier struct {
	name     string
	settings Settings
	http     *http.Client
	// Now is when a request is signed, by the machine's clock, as the receiver's is: a
	// simulated time would be refused as old.
	now func() time.Time
}

var _ escalation.Notifier = (*Notifier)(nil)

// New makes the notifier of a destination. It sends nothing.
func New(name string, s Settings) (*Notifier, error) {
	if faults := s.Validate(); len(faults) > 0 {
		return nil, faults[0]
	}
	s = s.Filled(name).(Settings)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	return &Notifier{name: name, settings: s, now: time.Now, http: &http.Client{
		Timeout: s.Timeout.Std(),
		// A request with a key would be sent again by itself where a connection that was kept
		// open breaks; here one try is one request.
		Transport: once{transport},
		// A redirect would carry the notice elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// once keeps net/http from sending a request again by itself.
type once struct{ next http.RoundTripper }

func (o once) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.GetBody = nil
	return o.next.RoundTrip(r)
}

// Send tells what is new.
func (n *Notifier) Send(ctx context.Context, m escalation.Message) (recon.Receipt, error) {
	key := m.Notice
	return recon.Receipt{Channel: n.name, TS: key}, n.post(ctx, "post notice", key, event(m))
}

// Reply tells a further step. For a receiver it is an event like every other one.
func (n *Notifier) Reply(ctx context.Context, _ recon.Receipt, m escalation.Message) (recon.Receipt, error) {
	return n.Send(ctx, m)
}

// Edit tells that what was told has changed or ended.
func (n *Notifier) Edit(ctx context.Context, _ recon.Receipt, m escalation.Message) error {
	return n.post(ctx, "post change", m.Notice+"/"+strconv.Itoa(m.Edition), event(m))
}

// Find never finds anything: a receiver cannot be asked. What is then sent again bears
// the same key.
func (n *Notifier) Find(context.Context, escalation.Message, recon.Receipt, time.Time) (recon.Receipt, bool, error) {
	return recon.Receipt{}, false, nil
}

func (n *Notifier) post(ctx context.Context, op, key string, e Event) error {
	body, err := json.Marshal(e)
	if err != nil {
		return &escalation.Error{Destination: n.name, Op: op, Kind: escalation.Rejected, Code: "it cannot be written as JSON"}
	}
	secret, err := n.secret()
	if err != nil {
		return &escalation.Error{Destination: n.name, Op: op, Kind: escalation.Refused, Code: "the secret file cannot be read"}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, n.settings.APIURL, bytes.NewReader(body))
	if err != nil {
		return &escalation.Error{Destination: n.name, Op: op, Kind: escalation.Refused, Code: "the address cannot be used"}
	}
	at := strconv.FormatInt(n.now().Unix(), 10)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "reconciler")
	r.Header.Set(HeaderKey, key)
	r.Header.Set(HeaderTimestamp, at)
	r.Header.Set(HeaderSignature, "v1="+Sign(secret, at, body))
	resp, err := n.http.Do(r)
	if err != nil {
		kind, code := transport(err)
		return &escalation.Error{Destination: n.name, Op: op, Kind: kind, Code: code}
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxReply)) // only the status counts
	return n.judge(op, resp)
}

// Sign gives the signature of a body at a time: the HMAC-SHA256, in hex, over the
// timestamp, a full stop and the body.
func Sign(secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// secret is the shared secret as it is now: a new one needs no restart.
func (n *Notifier) secret() (string, error) {
	if n.settings.SecretFile == "" {
		return n.settings.Secret.Reveal(), nil
	}
	f, err := os.Open(n.settings.SecretFile)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSecret))
	s := strings.TrimSpace(string(b))
	if err == nil && s == "" {
		err = errors.New("it is empty")
	}
	return s, err
}

// judge says what a status means for the next try. Only an answer in the two hundreds
// has taken the notice.
func (n *Notifier) judge(op string, resp *http.Response) error {
	e := &escalation.Error{Destination: n.name, Op: op, Code: fmt.Sprintf("http_%d", resp.StatusCode)}
	switch status := resp.StatusCode; {
	case status >= 200 && status < 300:
		return nil
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "":
		e.Kind, e.RetryAfter = escalation.RateLimited, retryAfter(resp.Header.Get("Retry-After"))
	case status == http.StatusRequestTimeout, status >= 500:
		e.Kind = escalation.Lost // a gateway may have passed it on
	case status == http.StatusBadRequest, status == http.StatusRequestEntityTooLarge, status == http.StatusUnprocessableEntity:
		e.Kind = escalation.Rejected
	default:
		e.Kind = escalation.Refused
	}
	return e
}

// retryAfter reads whole seconds; 0 for everything else.
func retryAfter(s string) time.Duration {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 24*60*60 {
		return 0
	}
	return time.Duration(n) * time.Second
}

// transport judges an error without an answer. Only what certainly never left is told
// apart.
func transport(err error) (escalation.Kind, string) {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return escalation.Unavailable, "no connection"
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return escalation.Unavailable, "name not found"
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return escalation.Lost, "no answer in time"
	}
	return escalation.Lost, "connection broke"
}
