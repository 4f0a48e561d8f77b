package daemon

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
)

// Every replica finds that the digest of the day is due, at its start and again; it is told once.
func TestOneDigestIsToldHoweverManyReplicasAskForIt(t *testing.T) {
	t.Parallel()
	stripe, slack := startFakes(t)
	c := parse(t, oneSource+`
escalation:
  destinations: [{name: recon, kind: slack, settings: {channel: "#payments-recon", token: "${TOKEN}", api_url: "${SLACK_URL}"}}]
  digest: {schedule: "0 */3 * * *", to: [recon]}
`, map[string]string{"KEY": "sk_live_TESTONLY", "STRIPE_URL": stripe.URL(), "TOKEN": "xoxb-TESTONLY", "SLACK_URL": slack.URL()})
	url := pgtest.URL(t)
	day := lastDue(c.Escalation.Digest.Schedule, time.Now()).In(c.Zone).Format(time.DateOnly)
	told := func() (n int) {
		for _, m := range slack.Messages("payments-recon") {
			if strings.Contains(m.Text+string(m.Blocks), day) {
				n++
			}
		}
		return n
	}
	together := []*running{start(t, c, url), start(t, c, url)}
	for deadline := time.Now().Add(30 * time.Second); told() == 0 && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
	late := start(t, c, url) // and remembers nothing
	for _, r := range append(together, late) {
		r.await("/readyz", http.StatusOK, "ready")
	}
	time.Sleep(2 * noticesEvery) // so that each asked again
	for _, r := range append(together, late) {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	}
	if n := told(); n != 1 {
		t.Errorf("the digest of %s was told %d times\n%+v\n%s\n%s\n%s", day, n, slack.Messages("payments-recon"), together[0].log, together[1].log, late.log)
	}
}
