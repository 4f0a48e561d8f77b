package ledger_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func TestTheDaemonsRoleIsEnoughForEverythingThatTheLedgerDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.seed("op")
	url := w.url + map[bool]string{true: "&", false: "?"}[strings.Contains(w.url, "?")] + "options=-c%20role%3Dreconciler_daemon"
	led, err := ledger.Open(t.Context(), ledger.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(led.Close)
	w.led = led
	if role := one[string](w, `SELECT current_user`); role == "reconciler_daemon" {
		t.Fatal("the look behind the ledger has the daemon's role too")
	}

	now := t0.Add(time.Minute)
	w.apply(repeatable())
	w.actOn("acted")
	w.importing(operationLine("imported", `"state":"unknown"`))
	h := w.hold()
	if len(w.due(now, 10)) == 0 {
		t.Error("nothing is due")
	}
	w.record(closing(h, now, o))
	run, err := led.BeginRun(t.Context(), ledger.RunStart{Name: "sweep/stripe-main", Holder: "h", TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for what, try := range map[string]func() error{
		"expire leases":   func() error { _, err := led.ExpireLeases(t.Context(), source, now, 10); return err },
		"set aside":       func() error { _, err := led.SetAside(t.Context(), "imported", now, "fault"); return err },
		"snapshot":        func() error { _, err := led.Snapshot(t.Context(), now); return err },
		"forget requests": func() error { _, err := led.ForgetRequests(t.Context(), now, 10); return err },
		"drop replies":    func() error { _, err := led.DropReplies(t.Context(), now, now, 10); return err },
		"close dead runs": func() error { _, err := led.CloseDeadRuns(t.Context()); return err },
		"fold tallies":    func() error { return led.FoldTallies(t.Context()) },
		"finish a run":    func() error { return led.FinishRun(t.Context(), run, ledger.RunEnd{Outcome: ledger.RunDone}) },
		"notices":         func() error { _, err := led.DueNotices(t.Context(), now, 10); return err },
		"tell": func() error {
			f := recon.Finding{Kind: recon.FindBlind, Certainty: recon.Proof, Source: source, Reason: "away"}
			if _, err := led.Record(t.Context(), ledger.Batch{Now: now, Findings: []recon.Finding{f}}); err != nil {
				return err
			}
			crowds, err := led.Crowds(t.Context(), now, t0)
			if err != nil || len(crowds) != 1 {
				return fmt.Errorf("%d crowds, %w", len(crowds), err)
			}
			_, err = led.Fold(t.Context(), recon.Fold{Source: source, Kind: f.Kind, As: f.Kind}, now, t0, now)
			return errors.Join(err, led.PassOverFolded(t.Context()))
		},
		"tell one": func() error {
			alarms, err := led.Alarms(t.Context(), now, 10)
			var plans []recon.Telling
			for _, a := range alarms {
				plans = append(plans, telling(a, now, step("after 0 s")))
			}
			return errors.Join(err, led.SaveTellings(t.Context(), plans, now))
		},
		"tell of many": func() error {
			all, err := led.Incidents(t.Context(), now, 10)
			for _, i := range all {
				err = errors.Join(err, led.SaveIncident(t.Context(), recon.Telling{Incident: i.ID, PlanAt: i.PlanAt, Over: true}, now, now))
			}
			return err
		},
		"appeared": func() error { _, err := led.Appeared(t.Context(), t0, 10); return err },
		"told": func() error {
			_, err := led.Told(t.Context(), []string{"none"})
			_, claimed := led.ClaimNotice(t.Context(), "none", 1, now, now.Add(time.Minute))
			return errors.Join(err, claimed, led.SettleNotice(t.Context(), "none", 1, recon.Delivery{Done: true}, now))
		},
		"digest": func() error {
			_, err := led.Digest(t.Context(), t0, now)
			return errors.Join(err, led.PlanDigest(t.Context(), "2026-03-01", []string{"recon"}, "digest", now))
		},
		"release": func() error { return led.ReleaseSource(t.Context(), h) },
	} {
		if err := try(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if o := w.story("op").Operation; o.State != recon.Succeeded {
		t.Errorf("the operation is %s", o.State)
	}
	w.verifyChains()
}
