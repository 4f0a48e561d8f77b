package stripe

import (
	"encoding/json"
	"net/http"

	"github.com/seed-1c4f4dc2/reconciler/attempt"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// answered is what a row looks at.
type answered struct {
	attempt.Reply
	error replyError // of a status of 400 and more
}

func (a answered) between(from, to int) bool { return a.Status >= from && a.Status <= to }

// row says what one kind of answer means for the operation. first holds while no earlier
// attempt is in doubt, repeat when one is. stored is what it means where Stripe says that
// this is its stored answer: that is the first request's, whichever attempt hears it.
type row struct {
	name                  string
	fits                  func(answered) bool
	first, repeat, stored recon.AttemptClass
}

// rows are asked in order; the first that fits holds. They are those of Stripe's own
// documentation: before the limiter and authentication nothing was executed, a stored 500
// says nothing and will say the same for ever, and what a proxy says is not Stripe's.
var rows = []row{
	{"refused_here", func(a answered) bool { return a.Refused != nil }, notSent, notSent, notSent},
	// Nothing came through the transport: the client may lack it, so it may have sent.
	{"unwatched", func(a answered) bool { return !a.Seen }, unsure, unsure, unsure},
	{"not_written", func(a answered) bool { return a.Unwritten }, notSent, notSent, notSent},
	{"no_answer", func(a answered) bool { return a.Status == 0 }, unsure, unsure, unsure},
	{"answer_cut_off", func(a answered) bool { return !a.Answered() }, unsure, unsure, unsure},
	{"not_an_error", func(a answered) bool { return a.Status < 400 }, unsure, unsure, unsure},
	{"not_stripes_answer", func(a answered) bool { return !a.error.json }, unsure, unsure, unsure},
	// Our key was used for another request, which may have had its effect.
	{"key_used_otherwise", func(a answered) bool { return a.error.Type == "idempotency_error" }, unsure, unsure, unsure},
	{"lock_timeout", func(a answered) bool { return a.error.Code == "lock_timeout" }, unsure, unsure, unsure},
	{"rate_limited", func(a answered) bool { return a.Status == http.StatusTooManyRequests }, notSent, notSent, notSent},
	{"not_let_in", func(a answered) bool { return a.Status == 401 || a.Status == 403 }, notSent, notSent, notSent},
	{"key_in_use", func(a answered) bool { return a.Status == http.StatusConflict }, unsure, unsure, unsure},
	{"dependency_failed", func(a answered) bool { return a.Status == http.StatusFailedDependency }, unsure, unsure, unsure},
	{"stored_error", func(a answered) bool { return a.Status == http.StatusInternalServerError }, storedError, storedError, storedError},
	{"server_error", func(a answered) bool { return a.between(501, 599) }, unsure, unsure, unsure},
	// A declined card is stored under the key: this is its answer for ever.
	{"declined", func(a answered) bool { return a.Status == 402 && a.error.Type == "card_error" }, no, no, no},
	// A definite no to this request. To a repeat it may be caused by what the first one
	// did (charge_already_refunded, once the key is forgotten), unless it is stored.
	{"refused", func(a answered) bool { return a.Status == 400 || a.Status == 402 || a.Status == 404 }, no, notSent, no},
	{"not_known", func(answered) bool { return true }, unsure, unsure, unsure},
}

const (
	no          = recon.ClassRefused
	notSent     = recon.ClassNotSent
	storedError = recon.ClassStoredError
	unsure      = recon.ClassIndeterminate
)

// Report says what came of the attempt, from what went over the wire. What stripe-go
// returned is not asked: it hides statuses, earlier attempts and objects without an id.
func (s *Sent) Report() recon.AttemptReport { return s.sending.report(s.exchange.Reply()) }

func (s Sending) report(reply attempt.Reply) recon.AttemptReport {
	report := recon.AttemptReport{}
	if id := reply.Header.Get("Request-Id"); requestIDs.MatchString(id) {
		report.RequestID = id
	}
	if reply.Answered() && reply.Status >= 200 && reply.Status < 300 {
		return s.made(report, reply.Body)
	}
	a := answered{Reply: reply}
	if reply.Answered() && reply.Status >= 400 {
		a.error = readReplyError(reply.Status, reply.Body)
	}
	for _, row := range rows {
		if !row.fits(a) {
			continue
		}
		switch {
		case reply.Header.Get("Idempotent-Replayed") == "true":
			report.Class = row.stored
		case s.InDoubt:
			report.Class = row.repeat
		default:
			report.Class = row.first
		}
		report.ErrorCode = row.name
		if a.error.Code != "" {
			report.ErrorCode = a.error.Code
		}
		break
	}
	if report.Class == no {
		report.EffectID = declined(reply.Body)
	}
	return report
}

// made reads a success: the object's status says what the effect is. It is definite for
// a repeat too: either the first request's stored answer, or executed just now.
func (s Sending) made(report recon.AttemptReport, body []byte) recon.AttemptReport {
	var head struct {
		ID     string `json:"id"`
		Object string `json:"object"`
		Status string `json:"status"`
	}
	if json.Unmarshal(body, &head) != nil || head.ID == "" || head.Object == "" || len(head.ID) > maxText {
		report.Class, report.ErrorCode = unsure, "no_object"
		return report
	}
	report.EffectID = head.ID
	kind, _ := ourKind(head.Object)
	o, err := readObject(kind, body)
	switch {
	case err != nil && head.Status == "":
		report.Class = recon.ClassSucceeded // a kind without a status exists or does not
		return report
	case err != nil:
		report.Class, report.ErrorCode = recon.ClassAccepted, "status_not_known"
		return report
	}
	report.Result = o.reduced(s.Marker)
	switch status, _ := kinds[kind].status(o); status {
	case recon.Completed:
		report.Class = recon.ClassSucceeded
	case recon.EffectFailed:
		report.Class, report.ErrorCode = no, head.Object+"_failed"
	default:
		report.Class = recon.ClassAccepted
	}
	return report
}

// declined gives the object that a declined card leaves behind, for the record.
func declined(body []byte) string {
	var reply struct {
		Error struct {
			PaymentIntent struct {
				ID string `json:"id"`
			} `json:"payment_intent"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &reply) != nil || len(reply.Error.PaymentIntent.ID) > maxText {
		return ""
	}
	return reply.Error.PaymentIntent.ID
}
