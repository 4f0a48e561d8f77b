package guard_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-1c4f4dc2/reconciler/guard"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// fate is what becomes of one request at a provider that keeps keys.
type fate struct {
	kind     string // arrives, lost, limited
	answered bool   // the answer comes back
}

// keyed is a provider that executes a key once and answers a repeat with what came of
// it.
type keyed struct {
	outcome map[string]recon.AttemptClass
	effects map[string]int
}

func (k *keyed) handle(key string, refuses bool, f fate) recon.AttemptReport {
	switch f.kind {
	case "limited":
		return recon.AttemptReport{Class: recon.ClassNotSent}
	case "lost":
		return recon.AttemptReport{Class: recon.ClassIndeterminate}
	}
	if _, known := k.outcome[key]; !known {
		k.outcome[key] = recon.ClassSucceeded
		if refuses {
			k.outcome[key] = recon.ClassRefused
		} else {
			k.effects[key]++
		}
	}
	if !f.answered {
		return recon.AttemptReport{Class: recon.ClassIndeterminate}
	}
	return recon.AttemptReport{Class: k.outcome[key], EffectID: "re_" + key}
}

// TestWhateverHappensTheLedgerNeverSaysWhatIsNotTrue lets calls of several agents, lost
// requests and answers, limits, crashes and time pass over one intent.
func TestWhateverHappensTheLedgerNeverSaysWhatIsNotTrue(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		in := intent(fmt.Sprint(n))
		p := &keyed{outcome: map[string]recon.AttemptClass{}, effects: map[string]int{}}
		refuses := rapid.Bool().Draw(r, "refuses")
		var key string
		for range rapid.IntRange(1, 5).Draw(r, "calls") {
			s.advance(time.Duration(rapid.SampledFrom([]int{0, 1, 61, 3600, 90000}).Draw(r, "seconds")) * time.Second)
			g := *s.guard
			if rapid.IntRange(0, 3).Draw(r, "crash") == 0 {
				g.Ledger = mute{s.ledger} // dies after the call, before it can be told
			}
			a, err := g.Do(t.Context(), guard.Call{Intent: in, Send: func(_ context.Context, a guard.Attempt) recon.AttemptReport {
				if key != "" && key != a.Key {
					r.Fatalf("keys %s and %s", key, a.Key)
				}
				key = a.Key
				f := fate{rapid.SampledFrom([]string{"arrives", "arrives", "lost", "limited"}).Draw(r, "fate"), rapid.Bool().Draw(r, "answered")}
				return p.handle(a.Key, refuses, f)
			}})
			if err != nil && a.Verdict != guard.UnknownReconciliationRequired {
				r.Fatalf("verdict %s beside the error %v", a.Verdict, err)
			}
			if p.effects[key] > 1 {
				r.Fatalf("%d effects", p.effects[key])
			}
			if a.Verdict == guard.Succeeded && p.effects[key] != 1 || a.Verdict == guard.FailedSafeToRetry && p.effects[key] != 0 {
				r.Fatalf("%d effects, and the verdict is %s", p.effects[key], a.Verdict)
			}
		}
	})
}

// mute loses every finish, as a process does that dies between the answer and the record.
type mute struct{ guard.Ledger }

func (mute) Finish(context.Context, ledger.FinishRequest) (ledger.FinishAnswer, error) {
	return ledger.FinishAnswer{}, &ledger.Fault{Op: "finish", Kind: ledger.FaultOther}
}
