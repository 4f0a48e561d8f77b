package escalation

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func TestAFailureSaysWhenToTryAgain(t *testing.T) {
	t.Parallel()
	fail := func(k Kind, code string, after time.Duration) error {
		return &Error{Destination: "recon", Op: "post message", Kind: k, Code: code, RetryAfter: after}
	}
	tests := []struct {
		name     string
		err      error
		failures int
		doubt    bool // before
		want     recon.Delivery
		held     time.Duration
	}{
		{"rate limited, as asked", fail(RateLimited, "", 30*time.Second), 0, false, recon.Delivery{Next: now.Add(30 * time.Second), Reason: "rate_limited"}, 30 * time.Second},
		{"rate limited, nothing said", fail(RateLimited, "", 0), 5, false, recon.Delivery{Next: now.Add(time.Second), Reason: "rate_limited"}, time.Second},
		{"rate limited for a day", fail(RateLimited, "", 24*time.Hour), 0, false, recon.Delivery{Next: now.Add(10 * time.Minute), Reason: "rate_limited"}, 10 * time.Minute},
		{"out of reach, the first time", fail(Unavailable, "no connection", 0), 0, false, recon.Delivery{Next: now.Add(5 * time.Second), Reason: "unavailable: no connection"}, 5 * time.Second},
		{"out of reach, the fourth time", fail(Unavailable, "", 0), 3, false, recon.Delivery{Next: now.Add(40 * time.Second), Reason: "unavailable"}, 40 * time.Second},
		{"out of reach for hours", fail(Unavailable, "", 0), 1_000_000, false, recon.Delivery{Next: now.Add(5 * time.Minute), Reason: "unavailable"}, 5 * time.Minute},
		{"a lost answer is in doubt", fail(Lost, "no answer in time", 0), 0, false, recon.Delivery{Next: now.Add(15 * time.Second), Doubt: true, Reason: "lost_answer: no answer in time"}, 15 * time.Second},
		{"an error of no kind is in doubt", errors.New("surprise"), 0, false, recon.Delivery{Next: now.Add(15 * time.Second), Doubt: true, Reason: "lost_answer"}, 15 * time.Second},
		{"a doubt stays when the next request is refused", fail(RateLimited, "", time.Second), 0, true, recon.Delivery{Next: now.Add(time.Second), Doubt: true, Reason: "rate_limited"}, time.Second},
		{"refused until mended", fail(Refused, "is_archived", 0), 0, false, recon.Delivery{Next: now.Add(10 * time.Minute), Undelivered: true, Reason: "refused: is_archived"}, 10 * time.Minute},
		{"one message refused holds back no other", fail(Rejected, "invalid_blocks", 0), 0, false, recon.Delivery{Next: now.Add(10 * time.Minute), Undelivered: true, Reason: "rejected: invalid_blocks"}, 0},
		{"wrapped", fmt.Errorf("look for an earlier post: %w", fail(Unavailable, "", 0)), 0, true, recon.Delivery{Next: now.Add(5 * time.Second), Doubt: true, Reason: "unavailable"}, 5 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := judgeFailure(recon.Notice{Doubt: tt.doubt}, tt.err, tt.failures, now)
			if d := cmp.Diff(tt.want, o.delivery); d != "" {
				t.Error(d)
			}
			held := time.Duration(0)
			if !o.hold.IsZero() {
				held = o.hold.Sub(now)
			}
			if held != tt.held {
				t.Errorf("the destination is left alone for %v, want %v", held, tt.held)
			}
			if o.delivery.Undelivered != (o.result == Undelivered) {
				t.Errorf("result %s does not fit the delivery", o.result)
			}
		})
	}
}

func TestEveryFailureHasANextTry(t *testing.T) {
	t.Parallel()
	for _, k := range []Kind{RateLimited, Unavailable, Lost, Refused, Rejected, Gone, "a kind of tomorrow"} {
		for failures := range 70 {
			o := judgeFailure(recon.Notice{}, &Error{Kind: k}, failures, now)
			if !o.delivery.Next.After(now) || o.delivery.Next.After(now.Add(time.Hour)) {
				t.Fatalf("%s after %d failures: next try %v", k, failures, o.delivery.Next)
			}
		}
	}
}
