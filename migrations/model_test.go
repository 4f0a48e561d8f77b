package migrations_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// model is what the contract says of one operation, told a second time in Go. It knows
// nothing of how the functions are written.
type model struct {
	policy     recon.Policy
	now        time.Time
	state      recon.State
	attempts   int
	calls      map[string]int
	doubt      bool // an attempt before the present one may have had an effect
	class      recon.AttemptClass
	sent       time.Time // start of the first attempt that may have done something
	leaseUntil time.Time
	token      string
	retryAt    time.Time // chosen by the database; the model only bounds it
}

// live reports whether an attempt is under way.
func (m *model) live() bool { return m.state == recon.InProgress && m.leaseUntil.After(m.now) }

// endLease does what every claim does first.
func (m *model) endLease() {
	if m.state == recon.InProgress && !m.live() {
		m.state, m.doubt, m.token = recon.Unknown, true, ""
		m.retryAt = time.Time{}
	}
}

func (m *model) mayClaim(call string, lease time.Duration) bool {
	if m.attempts >= m.policy.PerOperation || call != "" && m.calls[call] >= m.policy.PerCall {
		return false
	}
	switch m.state {
	case recon.Pending:
		return true // nothing in doubt ever leads back to pending here
	case recon.Unknown:
		keyServes := m.now.Add(lease).Before(m.sent.Add(m.policy.KeyLifetime.Std()).Add(-m.policy.KeyMargin.Std()))
		return m.policy.Repeat == recon.RepeatSameKey && m.class != recon.ClassStoredError && keyServes && !m.retryAt.After(m.now)
	}
	return false
}

func (m *model) claim(call string, lease time.Duration, token string) {
	if m.sent.IsZero() {
		m.sent = m.now
	}
	m.state, m.attempts, m.token, m.leaseUntil = recon.InProgress, m.attempts+1, token, m.now.Add(lease)
	if call != "" {
		n := m.calls[call] + 1
		m.calls = map[string]int{call: n} // only the latest call is counted
	} else {
		m.calls = map[string]int{}
	}
}

func (m *model) finish(class recon.AttemptClass, effect bool) {
	if !effect && (class == recon.ClassSucceeded || class == recon.ClassAccepted) {
		class = recon.ClassIndeterminate
	}
	before := m.doubt
	switch {
	case class == recon.ClassSucceeded:
		m.state = recon.Succeeded
	case class == recon.ClassRefused && (!before || m.policy.RepeatAnswer):
		m.state = recon.Failed
	case class == recon.ClassNotSent && !before:
		m.state, m.sent = recon.Pending, time.Time{}
	default:
		m.state = recon.Unknown
	}
	m.doubt = before || class == recon.ClassAccepted || class == recon.ClassStoredError || class == recon.ClassIndeterminate
	m.class, m.token, m.leaseUntil = class, "", m.now
}

var verdictOf = map[recon.State]string{
	recon.Pending: "failed_safe_to_retry", recon.InProgress: "unknown_reconciliation_required",
	recon.Unknown: "unknown_reconciliation_required", recon.Succeeded: "succeeded", recon.Failed: "failed_safe_to_retry",
}

// TestActingFollowsTheModel drives one operation through any order of claims, finishes,
// stale finishes, repeated openings and waits, and holds every answer against the model.
func TestActingFollowsTheModel(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		p := policy()
		p.Action = fmt.Sprintf("act-%d", n)
		p.RepeatAnswer = rapid.Bool().Draw(rt, "repeat answers")
		p.Repeat = rapid.SampledFrom([]recon.Repeat{recon.RepeatSameKey, recon.RepeatSameKey, recon.RepeatNever}).Draw(rt, "repeat")
		p.PerOperation = rapid.IntRange(1, 5).Draw(rt, "per operation")
		p.PerCall = rapid.IntRange(1, 3).Draw(rt, "per call")
		a.policy(p)
		in := refund.with(object{"action": p.Action})
		id := a.call("open_operation", in).text("operation_id")
		in["id"] = id
		m := &model{policy: p, now: a.now(), state: recon.Pending, calls: map[string]int{}}
		var stale []string
		rt.Repeat(map[string]func(*rapid.T){
			"wait": func(rt *rapid.T) {
				d := rapid.SampledFrom([]time.Duration{time.Second, 30 * time.Second, time.Minute, 10 * time.Minute, 20 * time.Hour}).Draw(rt, "d")
				a.advance(d)
				m.now = m.now.Add(d)
			},
			"claim": func(rt *rapid.T) {
				call := rapid.SampledFrom([]string{"", "c1", "c2"}).Draw(rt, "call")
				lease := time.Duration(rapid.IntRange(1, 90).Draw(rt, "lease")) * time.Second
				changes := object{"lease_seconds": int(lease / time.Second)}
				if call != "" {
					changes["call"] = call
				}
				lease = min(lease, time.Minute)
				if m.state == recon.InProgress && !m.live() {
					stale = append(stale, m.token)
				}
				m.endLease()
				want := m.mayClaim(call, lease)
				got := a.claim(id, changes)
				if got["claimed"] != want {
					rt.Fatalf("claim by %q: %v, want claimed %v of %+v", call, got, want, m)
				}
				if want {
					m.claim(call, lease, got.text("token"))
					if got["verdict"] != "send" || got["attempt"] != float64(m.attempts) {
						rt.Fatalf("claim: %v", got)
					}
				} else if got["verdict"] != verdictOf[m.state] || got["token"] != nil {
					rt.Fatalf("claim of %s: %v", m.state, got)
				}
			},
			"finish": func(rt *rapid.T) {
				class := rapid.SampledFrom([]recon.AttemptClass{recon.ClassSucceeded, recon.ClassAccepted, recon.ClassRefused,
					recon.ClassNotSent, recon.ClassStoredError, recon.ClassIndeterminate}).Draw(rt, "class")
				effect := rapid.Bool().Draw(rt, "effect")
				changes := object{}
				if effect {
					changes["effect_id"] = "re_1"
				}
				live, token := m.live(), m.token
				if token == "" || rapid.IntRange(0, 4).Draw(rt, "which token") == 0 {
					live, token = false, rapid.SampledFrom(append(stale, "made up")).Draw(rt, "token")
				}
				got := a.finish(id, token, string(class), changes)
				if live {
					stale = append(stale, m.token)
					m.finish(class, effect)
					m.retryAt = a.retryAt(id)
				}
				if got["applied"] != live || got["state"] != string(m.state) || got["verdict"] != verdictOf[m.state] {
					rt.Fatalf("finish %s (effect %v, live %v): %v, want %s", class, effect, live, got, m.state)
				}
				if !m.state.Open() {
					return
				}
				if live && m.retryAt.Sub(m.now) > time.Minute {
					rt.Fatalf("it waits until %v, now is %v", m.retryAt, m.now)
				}
			},
			"open again": func(rt *rapid.T) {
				if got := a.call("open_operation", in); got["verdict"] != "existing" || got["state"] != string(m.state) {
					rt.Fatalf("opened again: %v, want existing and %s", got, m.state)
				}
			},
			"": func(rt *rapid.T) {
				if got := a.row(id, "state"); got != string(m.state) {
					rt.Fatalf("the state is %s, want %s", got, m.state)
				}
				if got := a.row(id, "attempts"); got != fmt.Sprint(m.attempts) || m.attempts > p.PerOperation {
					rt.Fatalf("%s attempts, want %d of at most %d", got, m.attempts, p.PerOperation)
				}
				if got := a.row(id, "sent_at") == "null"; got != m.sent.IsZero() {
					rt.Fatalf("sent_at is null: %v, want %v", got, m.sent.IsZero())
				}
			},
		})
	})
	a.checkChains()
}

func (a actor) retryAt(id string) (at time.Time) {
	a.t.Helper()
	must(a.t, a.pool.QueryRow(a.t.Context(), `SELECT coalesce(retry_at, '2000-01-01Z') FROM reconciler.operations
		WHERE tenant = 'default' AND operation_id = $1`, id).Scan(&at))
	return at.UTC()
}
