package escalation_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/escalation/slack"
	"github.com/seed-1c4f4dc2/reconciler/escalation/slack/slacktest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// What a process that tells people is given by its environment.
const (
	envDatabase = "ESCALATION_TEST_DATABASE"
	envSlack    = "ESCALATION_TEST_SLACK"
	envAhead    = "ESCALATION_TEST_AHEAD" // how far its clock is ahead
)

// TestMain is a process that tells people when its environment says so, so that a test
// can kill one.
func TestMain(m *testing.M) {
	if url := os.Getenv(envDatabase); url != "" {
		if err := tellPeople(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// tellPeople plans and delivers until it is killed.
func tellPeople(url string) error {
	ctx := context.Background() // it is killed, never told to stop
	ahead, err := time.ParseDuration(os.Getenv(envAhead))
	if err != nil {
		return err
	}
	now := func() time.Time { return time.Now().Add(ahead) }
	led, err := ledger.Open(ctx, ledger.Options{URL: url, MaxConns: 3})
	if err != nil {
		return err
	}
	n, err := slack.New(channel, slack.Settings{Channel: "#" + channel, Token: recon.NewSecret("xoxb-TESTONLY"), APIURL: os.Getenv(envSlack)})
	if err != nil {
		return err
	}
	planner := &escalation.Planner{Desk: led, Policy: escalation.Policy{Everybody: []string{channel}, FoldAt: 1000}, Now: now}
	go planner.Run(ctx, 10*time.Millisecond)
	d := &escalation.Deliverer{
		Notifiers: map[string]escalation.Notifier{channel: n}, Outbox: led, Stories: led, Now: now,
		Pause: func(ctx context.Context, _ time.Duration) error { time.Sleep(5 * time.Millisecond); return ctx.Err() }, // the pace is not what is tested
	}
	return d.Run(ctx, 10*time.Millisecond)
}

// teller is such a process.
type teller struct{ *exec.Cmd }

func (s *stand) startTeller(url string, ahead time.Duration) teller {
	s.Helper()
	self, err := os.Executable()
	if err != nil {
		s.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), envDatabase+"="+url, envSlack+"="+s.slack.URL(), envAhead+"="+ahead.String())
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	return teller{cmd}
}

// kill ends it as kill -9 does.
func (t teller) kill() {
	_ = t.Process.Kill() // it may have ended by itself, which the messages show
	_ = t.Wait()         // it was killed: that is its error
}

// A process that is killed at any point loses nothing, and at worst repeats a message
// that says so.
func TestAProcessKilledAnywhereLosesNothingAndRepeatsAtMostMarked(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var ahead atomic.Int64
	hasten := func(d time.Duration) time.Duration { return time.Duration(ahead.Add(int64(d))) }
	up, err := slacktest.Start(slacktest.Options{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Close)
	s.slack = up
	s.clock.at = time.Now().UTC()
	const findings = 12
	var told []string
	for i := range findings {
		o := s.lost(fmt.Sprintf("kill-%02d", i))
		s.pass(o.ID, []recon.Finding{finding(o, recon.FindUnresolved)})
		told = append(told, string(o.ID))
	}
	url := s.db.Config().ConnString()
	kills := 0
	for ; kills < 40 && s.pending() > 0; kills++ {
		seen := len(up.Calls())
		p := s.startTeller(url, hasten(3*time.Minute)) // the claims of the one before are over
		for wait := 0; wait < 300 && len(up.Calls()) == seen; wait++ {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(rand.N(12 * time.Millisecond)) // before, in or after the recording
		p.kill()
	}
	p := s.startTeller(url, hasten(3*time.Minute))
	defer p.kill()
	for wait := 0; wait < 1000 && s.pending() > 0; wait++ {
		time.Sleep(20 * time.Millisecond)
	}
	if n := s.pending(); n > 0 {
		t.Fatalf("%d are not told after %d kills", n, kills)
	}
	repeats := 0
	for _, id := range told {
		var first, marked int
		for _, m := range up.Messages(channel) {
			switch text := m.Plain(); {
			case !strings.Contains(text, id):
			case strings.Contains(text, "Possibly a repeat"):
				marked++
			default:
				first++
			}
		}
		if first+marked == 0 {
			t.Errorf("%s is lost", id)
		}
		if first > 1 {
			t.Errorf("%s is told %d times without a mark", id, first)
		}
		repeats += marked
	}
	t.Logf("%d kills, %d messages of %d findings, %d marked as a possible repeat", kills, len(up.Messages(channel)), findings, repeats)
	if kills < 3 {
		t.Errorf("only %d kills: nothing was tried", kills)
	}
}

// pending counts findings that were not planned and notices that were not delivered.
func (s *stand) pending() int {
	s.Helper()
	return s.count(`SELECT (SELECT count(*) FROM reconciler.findings WHERE planned_version <> version OR level = 0)
		+ (SELECT count(*) FROM reconciler.notices WHERE state <> 'delivered')`)
}
