package sweep

import (
	"errors"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func TestB87_ASecondRunSaysWhoRunsSinceWhen(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.lose(refund(1))
	s.pass(10 * time.Minute)
	other := &Sweep{Ledger: s.ledger, Source: s.client(), Holder: "other/2"}
	var second error
	s.sweep.after = func(step string) error {
		if step == "ask" {
			_, second = other.Run(t.Context(), Options{Now: s.now})
		}
		return nil
	}
	s.run()
	var running *ledger.RunningError
	if !errors.As(second, &running) || running.By != "test/1" || !running.Since.Equal(s.now()) {
		t.Errorf("the second run: %v", second)
	}
	s.sweep.after = nil
	if _, err := other.Run(t.Context(), Options{Now: s.now}); err != nil {
		t.Errorf("after the first has ended: %v", err)
	}
}

func TestB91_ATickRunsOnceHoweverShortItWas(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	other := &Sweep{Ledger: s.ledger, Source: s.client(), Holder: "other/2"}
	options := Options{Now: s.now, Tick: "2026-03-02T09:00:00Z"}
	if _, err := s.sweep.Run(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	s.pass(time.Second)
	_, err := other.Run(t.Context(), options)
	var tick *ledger.TickError
	if !errors.As(err, &tick) || tick.By != "test/1" {
		t.Errorf("the second replica: %v", err)
	}
	options.Tick = "2026-03-02T09:01:00Z"
	if _, err := other.Run(t.Context(), options); err != nil {
		t.Errorf("the next tick: %v", err)
	}
}

func TestB30_TheOldestStuckRowsDoNotHideNewerOnes(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(p *recon.Policy) { p.GiveUpAfter = recon.Duration(10_000 * time.Hour) })
	const stuck, fresh = 121, 10
	for n := range stuck {
		s.lose(refund(n))
	}
	s.exec(`UPDATE reconciler.operations SET marks = '{}'`) // nothing was sent by which they could be found
	s.pass(300 * 24 * time.Hour)
	for n := stuck; n < stuck+fresh; n++ {
		s.happen(refund(n), s.lose(refund(n)))
	}
	closed := 0
	for range 5 {
		s.pass(time.Minute)
		out, err := s.sweep.Run(t.Context(), Options{Now: s.now, Limit: 50})
		if err != nil {
			t.Fatal(err)
		}
		closed += out.Succeeded
	}
	if closed != fresh {
		t.Errorf("%d of today's %d were closed", closed, fresh)
	}
	if got := len(s.findings(recon.FindUnresolved)); got != stuck {
		t.Errorf("%d of the stuck ones are told, want %d", got, stuck)
	}
}

func TestB94_TheCostOfASweepFollowsWhatIsDue(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	cost := func(operations int, from int) int {
		for n := from; n < from+operations; n++ {
			s.happen(refund(n), s.lose(refund(n)))
		}
		s.pass(10 * time.Minute)
		s.count.take()
		if out := s.run(); out.Succeeded != operations {
			t.Fatalf("outcome %+v", out)
		}
		return s.count.take()
	}
	few, many := cost(10, 0), cost(200, 10)
	if many > few {
		t.Errorf("10 operations took %d statements, 200 took %d", few, many)
	}
	s.count.take()
	s.run()
	if idle := s.count.take(); idle > 13 {
		t.Errorf("a sweep with nothing to do takes %d statements", idle)
	}
}

func TestARunWaitsForASourceThatAnotherKindOfRunHolds(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	i := refund(1)
	s.happen(i, s.lose(i))
	s.pass(5 * time.Minute)
	other := &Sweep{Ledger: s.ledger, Source: s.client(), Holder: "other/2"}
	entered, leave := make(chan struct{}), make(chan struct{})
	other.after = func(step string) error {
		if step == "due" {
			close(entered)
			<-leave
		}
		return nil
	}
	ended := make(chan error)
	go func() {
		_, err := other.Reverify(t.Context(), Options{Now: s.now})
		ended <- err
	}()
	<-entered
	time.AfterFunc(2*askAgain, func() { close(leave) })
	if out := s.run(); out.Succeeded != 1 {
		t.Errorf("outcome %+v", out)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAHeldSourceIsNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	if _, err := s.ledger.HoldSource(t.Context(), testSource, "other/2", time.Hour); err != nil {
		t.Fatal(err)
	}
	s.sweep.wait = time.Millisecond
	_, err := s.sweep.Run(t.Context(), Options{Now: s.now})
	var held *ledger.HeldError
	if !errors.As(err, &held) || held.By != "other/2" {
		t.Errorf("err %v", err)
	}
	if runs, err := s.ledger.LastRuns(t.Context(), "sweep/"+string(testSource), 1); err != nil || runs[0].FinishedAt.IsZero() {
		t.Errorf("its place was not given back: %+v, %v", runs, err)
	}
}
