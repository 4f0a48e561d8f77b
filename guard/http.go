package guard

import (
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/attempt"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Row says what some answers mean. First holds while no earlier attempt is in doubt,
// Repeat when one is: then an answer may be definite about this request and silent about
// that one.
type Row struct {
	Name   string // becomes the error code
	Fits   func(attempt.Reply) bool
	First  recon.AttemptClass
	Repeat recon.AttemptClass
}

// Table is asked from its beginning; the first row that fits holds. Put your provider's
// rows before those of [Standard]:
//
//	append(guard.Table{{Name: "in_flight", Fits: guard.Status(423), First: …, Repeat: …}}, guard.Standard()...)
type Table []Row

// Standard is what holds for any JSON API, and no more: what is not certain is
// indeterminate. A row for a provider that stores its errors, or whose refusal of a repeat
// answers for the first, is yours to add.
func Standard() Table {
	json := func(statuses ...int) func(attempt.Reply) bool {
		return func(r attempt.Reply) bool { return Status(statuses...)(r) && IsJSON(r) }
	}
	return Table{
		{"refused_here", func(r attempt.Reply) bool { return r.Refused != nil }, recon.ClassNotSent, recon.ClassNotSent},
		// No request was seen: the client may lack the transport, so it may have sent.
		{"unwatched", func(r attempt.Reply) bool { return !r.Seen }, recon.ClassIndeterminate, recon.ClassIndeterminate},
		{"not_written", func(r attempt.Reply) bool { return r.Unwritten }, recon.ClassNotSent, recon.ClassNotSent},
		{"no_answer", func(r attempt.Reply) bool { return !r.Answered() }, recon.ClassIndeterminate, recon.ClassIndeterminate},
		// Before any work, and so silent about earlier attempts.
		{"not_let_in", json(401, 403, 429), recon.ClassNotSent, recon.ClassNotSent},
		{"refused", json(400, 402, 404, 405, 406, 410, 411, 413, 414, 415, 422, 431), recon.ClassRefused, recon.ClassNotSent},
		// 408, 409, 423, 424, 425, every 3xx and 5xx, and what a proxy may have said.
		{"not_definite", func(attempt.Reply) bool { return true }, recon.ClassIndeterminate, recon.ClassIndeterminate},
	}
}

// Class says what a reply means, and by which row.
func (t Table) Class(r attempt.Reply, inDoubt bool) (recon.AttemptClass, string) {
	for _, row := range t {
		if !row.Fits(r) {
			continue
		}
		if inDoubt {
			return row.Repeat, row.Name
		}
		return row.First, row.Name
	}
	return recon.ClassIndeterminate, "not_definite"
}

// Status fits whole answers with one of these statuses.
func Status(statuses ...int) func(attempt.Reply) bool {
	return func(r attempt.Reply) bool { return r.Answered() && slices.Contains(statuses, r.Status) }
}

// IsJSON fits whole answers that are JSON and say so. Another one may be a proxy's.
func IsJSON(r attempt.Reply) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return r.Answered() && err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json")) && json.Valid(r.Body)
}

// HTTP sends attempts with plain net/http.
type HTTP struct {
	// Client is used with a transport of ours around its own, which sends once; nil: a
	// client that waits as long as the attempt's deadline. Redirects are not followed.
	Client *http.Client
	// KeyHeader is the header that bears the idempotency key; empty: the caller puts the
	// key where the provider wants it, or the provider keeps none.
	KeyHeader string
	// RequestID is the header in which the provider names the request; may be empty.
	RequestID string
	Table     Table // nil: Standard
	// Made reads a 2xx: the id of the effect, and whether it is complete
	// ([recon.ClassSucceeded]), taken on ([recon.ClassAccepted]) or definitely not
	// (ClassRefused). Without an id the attempt is indeterminate. Required.
	Made func(body []byte) (id string, class recon.AttemptClass)
}

// Send sends the request once and reports what came of it.
func (h HTTP) Send(ctx context.Context, a Attempt, req *http.Request) recon.AttemptReport {
	ctx, x := attempt.Begin(ctx, nil)
	req = req.Clone(ctx)
	if h.KeyHeader != "" {
		req.Header.Set(h.KeyHeader, a.Key)
	}
	c := http.Client{}
	if h.Client != nil {
		c = *h.Client
	}
	c.Transport = &attempt.Transport{Next: c.Transport}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := c.Do(req)
	if err == nil {
		_, _ = io.Copy(io.Discard, resp.Body) // read already; the reply has it
		_ = resp.Body.Close()
	}
	return h.report(x.Reply(), a.InDoubt)
}

func (h HTTP) report(r attempt.Reply, inDoubt bool) recon.AttemptReport {
	var report recon.AttemptReport
	if h.RequestID != "" {
		report.RequestID = r.Header.Get(h.RequestID)
	}
	if r.Answered() && r.Status >= 200 && r.Status < 300 {
		report.EffectID, report.Class = h.Made(r.Body)
		if report.EffectID == "" {
			report.Class, report.ErrorCode = recon.ClassIndeterminate, "no_effect_named"
			return report
		}
		if IsJSON(r) {
			report.Result = r.Body
		}
		return report
	}
	table := h.Table
	if table == nil {
		table = Standard()
	}
	report.Class, report.ErrorCode = table.Class(r, inDoubt)
	if r.Status != 0 {
		report.ErrorCode += "_" + strconv.Itoa(r.Status)
	}
	return report
}
