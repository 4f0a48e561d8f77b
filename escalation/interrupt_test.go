package escalation_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/escalation/slack"
	"github.com/seed-1c4f4dc2/reconciler/internal/breaker"
	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// tellAll plans and delivers for a while, as a process does, and gives the first error.
func tellAll(ctx context.Context, s *stand, l *ledger.Ledger, slackURL string) error {
	n, err := slack.New(channel, slack.Settings{Channel: "#" + channel, Token: recon.NewSecret("xoxb-TESTONLY"), APIURL: slackURL})
	if err != nil {
		return err
	}
	planner := escalation.Planner{Desk: l, Policy: s.policy, Now: s.clock.now}
	d := &escalation.Deliverer{
		Notifiers: map[string]escalation.Notifier{channel: n}, Outbox: l, Stories: l, Now: s.clock.now, Pause: s.clock.wait, Policy: s.policy,
	}
	for range 3 {
		if _, err := planner.Pass(ctx); err != nil {
			return err
		}
		if _, err := d.Pass(ctx); err != nil {
			return err
		}
		s.wait(10 * time.Second) // whether others open with it
	}
	return nil
}

// told are the operations that messages in the channel name, each once. A message whose
// predecessor may have arrived is marked, also where it did not; without a mark there is at
// most one.
func (s *stand) told() []string {
	s.Helper()
	var all, unmarked []string
	for _, m := range s.slack.Messages(channel) {
		text := m.Plain()
		for n := range 3 {
			name := fmt.Sprintf("order:broken-%d", n)
			if !strings.Contains(text, name) {
				continue
			}
			all = append(all, name)
			if !strings.Contains(text, "Possibly a repeat") {
				if slices.Contains(unmarked, name) {
					s.Errorf("%s is told twice without a mark", name)
				}
				unmarked = append(unmarked, name)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Whatever breaks off, each finding is told once, and what is told again is marked.
func TestATellingThatBreaksOffAnywhereEndsInTheSameMessages(t *testing.T) {
	t.Parallel()
	breaker.Experiment[*stand]{
		New: func(t *testing.T) *stand {
			s := newStand(t, channel)
			for n := range 3 {
				o := s.lost(fmt.Sprintf("broken-%d", n))
				f := finding(o, recon.FindUnresolved)
				s.pass(o.ID, []recon.Finding{f})
				if n == 2 { // and it ends before anybody is told of the others
					s.pass(o.ID, nil, f)
				}
			}
			return s
		},
		Do: func(ctx context.Context, s *stand, b *breaker.Breaker) error {
			l, err := ledger.Open(s.Context(), ledger.Options{URL: s.db.Config().ConnString(), MaxConns: 3, Tracer: b})
			if err != nil {
				return err
			}
			defer l.Close()
			return tellAll(ctx, s, l, b.Proxy(s.T, s.slack.URL()))
		},
		Again: func(s *stand) {
			s.wait(5 * time.Minute) // the claims of whoever died are over
			if err := tellAll(s.Context(), s, s.led, s.slack.URL()); err != nil {
				s.Fatal(err)
			}
			s.wait(5 * time.Minute)
			if err := tellAll(s.Context(), s, s.led, s.slack.URL()); err != nil {
				s.Fatal(err)
			}
		},
		Said: func(s *stand) []string {
			list := pgtest.Rows{DB: s.db, Now: s.clock.now(), Except: []pgtest.Exception{
				{Table: "notices", Columns: []string{"attempts"}, Why: "counts the tries"},
				{Table: "notices", Columns: []string{"ts"}, Why: "names the message by when it was posted"},
			}}.Read(s.T)
			told := s.told()
			if len(told) != 2 {
				s.Errorf("told of %v, want both that are open", told)
			}
			return append(list, told...)
		},
	}.Everywhere(t)
}
