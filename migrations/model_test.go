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

// pair is one operation and its model.
type pair struct {
	actor
	*model
	id    string
	in    object
	stale []string // tokens of leases that are over
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
		m := &pair{actor: a, model: &model{policy: p, now: a.now(), state: recon.Pending, calls: map[string]int{}}, id: id, in: in}
		rt.Repeat(map[string]func(*rapid.T){
			"wait": m.wait, "claim": m.claims, "finish": m.finishes, "open again": m.opensAgain, "": m.agree,
		})
	})
	a.checkChains()
}

func (m *pair) wait(rt *rapid.T) {
	d := rapid.SampledFrom([]time.Duration{time.Second, 30 * time.Second, time.Minute, 10 * time.Minute, 20 * time.Hour}).Draw(rt, "d")
	m.advance(d)
	m.model.now = m.model.now.Add(d)
}

func (m *pair) claims(rt *rapid.T) {
	call := rapid.SampledFrom([]string{"", "c1", "c2"}).Draw(rt, "call")
	seconds := rapid.IntRange(1, 90).Draw(rt, "lease")
	changes := object{"lease_seconds": seconds}
	if call != "" {
		changes["call"] = call
	}
	lease := min(time.Duration(seconds)*time.Second, time.Minute)
	if m.state == recon.InProgress && !m.live() {
		m.stale = append(m.stale, m.token)
	}
	m.endLease()
	want := m.mayClaim(call, lease)
	got := m.actor.claim(m.id, changes)
	if got["claimed"] != want {
		rt.Fatalf("claim by %q: %v, want claimed %v of %+v", call, got, want, m.model)
	}
	if !want {
		if got["verdict"] != verdictOf[m.state] || got["token"] != nil {
			rt.Fatalf("claim of %s: %v", m.state, got)
		}
		return
	}
	m.model.claim(call, lease, got.text("token"))
	if got["verdict"] != "send" || got["attempt"] != float64(m.attempts) {
		rt.Fatalf("claim: %v", got)
	}
}

func (m *pair) finishes(rt *rapid.T) {
	class := rapid.SampledFrom([]recon.AttemptClass{recon.ClassSucceeded, recon.ClassAccepted, recon.ClassRefused,
		recon.ClassNotSent, recon.ClassStoredError, recon.ClassIndeterminate}).Draw(rt, "class")
	effect := rapid.Bool().Draw(rt, "effect")
	changes := object{}
	if effect {
		changes["effect_id"] = "re_1"
	}
	live, token := m.live(), m.token
	if token == "" || rapid.IntRange(0, 4).Draw(rt, "which token") == 0 {
		live, token = false, rapid.SampledFrom(append(m.stale, "made up")).Draw(rt, "token")
	}
	got := m.actor.finish(m.id, token, string(class), changes)
	if live {
		m.stale = append(m.stale, m.token)
		m.model.finish(class, effect)
		m.model.retryAt = m.actor.retryAt(m.id)
	}
	if got["applied"] != live || got["state"] != string(m.state) || got["verdict"] != verdictOf[m.state] {
		rt.Fatalf("finish %s (effect %v, live %v): %v, want %s", class, effect, live, got, m.state)
	}
	if live && m.state.Open() && m.model.retryAt.Sub(m.model.now) > time.Minute {
		rt.Fatalf("it waits until %v, now is %v", m.model.retryAt, m.model.now)
	}
}

func (m *pair) opensAgain(rt *rapid.T) {
	if got := m.call("open_operation", m.in); got["verdict"] != "existing" || got["state"] != string(m.state) {
		rt.Fatalf("opened again: %v, want existing and %s", got, m.state)
	}
}

func (m *pair) agree(rt *rapid.T) {
	if got := m.row(m.id, "state"); got != string(m.state) {
		rt.Fatalf("the state is %s, want %s", got, m.state)
	}
	if got := m.row(m.id, "attempts"); got != fmt.Sprint(m.attempts) || m.attempts > m.model.policy.PerOperation {
		rt.Fatalf("%s attempts, want %d of at most %d", got, m.attempts, m.model.policy.PerOperation)
	}
	if got := m.row(m.id, "sent_at") == "null"; got != m.sent.IsZero() {
		rt.Fatalf("sent_at is null: %v, want %v", got, m.sent.IsZero())
	}
}

func (a actor) retryAt(id string) (at time.Time) {
	a.t.Helper()
	must(a.t, a.pool.QueryRow(a.t.Context(), `SELECT coalesce(retry_at, '2000-01-01Z') FROM reconciler.operations
		WHERE tenant = 'default' AND operation_id = $1`, id).Scan(&at))
	return at.UTC()
}
