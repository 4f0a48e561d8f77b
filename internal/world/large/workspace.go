package large

import (
	"net/http"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/escalation/slack/slacktest"
)

// slackMethods are those that can go wrong: what the product posts, edits and looks for, the
// forms that it opens, and what it tells whoever clicked.
var slackMethods = []string{"chat.postMessage", "chat.update", "conversations.history", "conversations.replies", "views.open", "response_url"}

// slackFaults lists how.
var slackFaults = []slacktest.Fault{
	{LoseAnswer: true}, {LoseRequest: true}, {Status: http.StatusTooManyRequests, RetryAfter: 30 * time.Second}, {Status: http.StatusBadGateway},
	{Error: "internal_error"},
}

// slackAway has the workspace lose requests and answers, and limit, each method in each way once.
func (w *World) slackAway(t trouble, over time.Time) {
	for m, method := range slackMethods {
		for n := range slackFaults {
			f := slackFaults[(n+m+t.size)%len(slackFaults)]
			f.Method, f.After, f.Times = method, n+t.size%3, 1
			w.slack.Spoil(f)
		}
	}
	w.formsFail = true
	w.agenda.Plan(over, func() error { w.slack.Mend(); w.formsFail = false; return nil })
}

// channelShut has somebody remove the bot from the channel, or archive it, until somebody else
// mends that.
func (w *World) channelShut(t trouble, over time.Time) {
	shut, what := w.slack.Kick, "bot removed from the channel"
	if t.size%2 == 0 {
		shut, what = w.slack.Archive, "channel archived"
	}
	w.tally.fault(what)
	shut(destination, true)
	w.agenda.Plan(over, func() error { shut(destination, false); return nil })
}

// deleteMessages has people delete some of what stands in the channel.
func (w *World) deleteMessages(t trouble) {
	for n, m := range w.slack.Messages(destination) {
		if n%3 == t.size%3 {
			w.slack.Delete(m.TS)
			w.deleted[m.TS] = true
		}
	}
}

// countSlackFaults counts what went wrong with requests to the workspace.
func (w *World) countSlackFaults() {
	for _, c := range w.slack.Calls() {
		if c.Outcome != "ok" {
			w.tally.fault(slackFailed(c.Method))
		}
	}
}
