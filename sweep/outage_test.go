package sweep

import (
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/escalation/slack"
	"github.com/seed-1c4f4dc2/reconciler/escalation/slack/slacktest"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// outage is what an hour in which a source did not answer cost.
type outage struct {
	calls int
	looks int           // rows of evidence that say nothing new
	blind int           // findings that the source cannot be asked
	told  int           // findings of all kinds
	rows  int           // rows of the whole ledger
	said  int           // messages in Slack
	over  time.Duration // from its end until the ledger knew
}

// anHourOfOutage lives through an hour of minutely sweeps with due operations and a
// provider that answers nothing, and through its end.
func (s *stand) anHourOfOutage(due int) outage {
	s.Helper()
	s.exec(fillSQL, due, monday.Add(-time.Minute))
	s.stripe.Script(stripetest.Fault{Kind: stripetest.Closed, Times: stripetest.Always})
	rows := s.size()
	tell, workspace := s.messenger()
	for range 60 {
		s.run()
		tell()
		s.pass(time.Minute)
	}
	o := outage{
		calls: len(s.stripe.Calls()), looks: number(s, `SELECT count(*)::text FROM reconciler.looks`), blind: len(s.findings(recon.FindBlind)),
		told: number(s, `SELECT count(*)::text FROM reconciler.findings`), rows: s.size() - rows, said: len(workspace.Messages("payments-recon")),
	}
	s.stripe.ClearFaults()
	for number(s, `SELECT count(*)::text FROM reconciler.findings WHERE kind = 'blind' AND state <> 'ended'`) > 0 && o.over < time.Hour {
		s.pass(time.Minute)
		s.run()
		o.over += time.Minute
	}
	return o
}

// size is how many rows the ledger has.
func (s *stand) size() int {
	s.Helper()
	total := 0
	for _, table := range s.rows(`SELECT quote_ident(t.relname) FROM pg_class t WHERE t.relnamespace = 'reconciler'::regnamespace AND t.relkind = 'r'`) {
		total += number(s, `SELECT count(*)::text FROM reconciler.`+table)
	}
	return total
}

// messenger gives what plans and delivers notices once, and the Slack that they come to.
func (s *stand) messenger() (tell func(), workspace *slacktest.Server) {
	s.Helper()
	const channel = "payments-recon"
	workspace, err := slacktest.Start(slacktest.Options{Token: "xoxb-TESTONLY"})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(workspace.Close)
	notifier, err := slack.New(channel, slack.Settings{Channel: "#" + channel, Token: recon.NewSecret("xoxb-TESTONLY"), APIURL: workspace.URL()})
	if err != nil {
		s.Fatal(err)
	}
	planner := &escalation.Planner{Desk: s.ledger, Policy: escalation.Policy{Everybody: []string{channel}}, Now: s.now, Log: slog.New(slog.DiscardHandler)}
	deliverer := &escalation.Deliverer{
		Notifiers: map[string]escalation.Notifier{channel: notifier}, Outbox: s.ledger, Stories: s.ledger, Now: s.now, Log: slog.New(slog.DiscardHandler),
	}
	return func() {
		s.Helper()
		if _, err := planner.Pass(s.Context()); err != nil {
			s.Fatal(err)
		}
		if _, err := deliverer.Pass(s.Context()); err != nil {
			s.Fatal(err)
		}
	}, workspace
}

func number(s *stand, sql string) int {
	s.Helper()
	n := 0
	for _, digit := range s.rows(sql)[0] {
		n = n*10 + int(digit-'0')
	}
	return n
}

// An outage is asked about as often, and told once, however many operations wait for its
// end; and its end is seen within the longest pause between two probes.
func TestAnHourOfOutageIsFewCallsAndOneMessage(t *testing.T) {
	t.Parallel()
	due := 2000
	if os.Getenv("SOAK") != "" { // the budget's own number takes a minute
		due = 10_000
	}
	few, many := newStand(t).anHourOfOutage(20), newStand(t).anHourOfOutage(due)
	t.Logf("few %+v, many %+v", few, many)
	if many.calls > few.calls+10 || many.calls > 200 || many.looks > 200 || many.rows > 1000 || many.rows > few.rows+100 {
		t.Errorf("%+v, with few operations %+v", many, few)
	}
	if many.blind != 1 || many.told != 1 || many.said != 1 {
		t.Errorf("%+v: want one finding and one message", many)
	}
	if many.over > maxProbe+time.Minute {
		t.Errorf("its end was seen after %s, want at most %s", many.over, maxProbe+time.Minute)
	}
}
