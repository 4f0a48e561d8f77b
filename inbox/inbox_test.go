package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-1c4f4dc2/reconciler/inbox"
	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const source recon.SourceName = "stripe-main"

var t0 = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

type world struct {
	*testing.T
	inbox *inbox.Store
	db    *pgxpool.Pool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	url := pgtest.URL(t)
	l, err := ledger.Open(t.Context(), ledger.Options{URL: url, MaxConns: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	w := &world{T: t, inbox: inbox.Open(l)}
	if w.db, err = pgxpool.New(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.db.Close)
	return w
}

func event(id string) recon.Event {
	return recon.Event{
		Source: source, System: "stripe", Account: "acct_1", Mode: "live", ID: id, Type: "refund.created",
		CreatedAt: t0, Signed: true, Body: []byte(`{"id":"` + id + `"}`),
	}
}

func (w *world) receive(list ...inbox.Delivery) []inbox.Receipt {
	w.Helper()
	got, err := w.inbox.Receive(w.Context(), list...)
	if err != nil {
		w.Fatal(err)
	}
	return got
}

func (w *world) take(now time.Time, limit int) []inbox.Taken {
	w.Helper()
	got, err := w.inbox.Take(w.Context(), source, now, 30*time.Second, limit)
	if err != nil {
		w.Fatal(err)
	}
	return got
}

func (w *world) finish(now time.Time, endings ...inbox.Ending) {
	w.Helper()
	if err := w.inbox.Finish(w.Context(), now, endings); err != nil {
		w.Fatal(err)
	}
}

func (w *world) list(f inbox.Filter) []inbox.Row {
	w.Helper()
	got, err := w.inbox.List(w.Context(), f)
	if err != nil {
		w.Fatal(err)
	}
	return got
}

func ids(taken []inbox.Taken) []string {
	list := []string{}
	for _, t := range taken {
		list = append(list, t.Event.ID)
	}
	slices.Sort(list)
	return list
}

func TestB05_FiftyDeliveriesOfOneEventAtTheSameMomentAreOneRow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var mu sync.Mutex
	counts := map[inbox.Receipt]int{}
	var all sync.WaitGroup
	for n := range 50 {
		all.Go(func() {
			got, err := w.inbox.Receive(t.Context(), inbox.Delivery{Event: event("evt_2"), At: t0.Add(time.Duration(n))})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
				return
			}
			counts[got[0]]++
		})
	}
	all.Wait()
	if diff := cmp.Diff(map[inbox.Receipt]int{inbox.Stored: 1, inbox.Repeated: 49}, counts); diff != "" {
		t.Error(diff)
	}
	rows := w.list(inbox.Filter{})
	if len(rows) != 1 || rows[0].Deliveries != 50 {
		t.Errorf("rows %+v", rows)
	}
}

func TestARepeatInOneCallIsCountedAndOnlyTheFirstIsNew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := func(id string) inbox.Delivery { return inbox.Delivery{Event: event(id), At: t0} }
	w.receive(at("evt_old"))
	got := w.receive(at("evt_b"), at("evt_a"), at("evt_b"), at("evt_old"))
	if diff := cmp.Diff([]inbox.Receipt{inbox.Stored, inbox.Stored, inbox.Repeated, inbox.Repeated}, got); diff != "" {
		t.Error(diff)
	}
	deliveries := map[string]int{}
	for _, r := range w.list(inbox.Filter{}) {
		deliveries[r.ID] = r.Deliveries
	}
	if diff := cmp.Diff(map[string]int{"evt_old": 2, "evt_a": 1, "evt_b": 2}, deliveries); diff != "" {
		t.Error(diff)
	}
}

func TestB83_TheSameIDInAnotherAccountOrModeIsAnotherEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, place := range [][2]string{{"acct_1", "live"}, {"acct_1", "test"}, {"acct_2", "live"}} {
		e := event("evt_1")
		e.Account, e.Mode = place[0], place[1]
		if got := w.receive(inbox.Delivery{Event: e, At: t0}); got[0] != inbox.Stored {
			t.Errorf("%v: %s", place, got[0])
		}
	}
	if rows := w.list(inbox.Filter{IDs: []string{"evt_1"}}); len(rows) != 3 {
		t.Errorf("%d rows", len(rows))
	}
}

func TestB71_BodiesAreKeptByteByByteWhateverTheyHold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bodies := map[string]string{
		"evt_nul":       `{"id":"evt_nul","d":"a\u0000b"}`,
		"evt_escaped":   `{"id":"evt_escaped","d":"a\\u0000b"}`,
		"evt_surrogate": `{"id":"evt_surrogate","d":"\ud800"}`,
		"evt_raw":       "{\"id\":\"evt_raw\",\"d\":\"a\x00\xff\"}",
	}
	for id, body := range bodies {
		e := event(id)
		e.Body = []byte(body)
		w.receive(inbox.Delivery{Event: e, At: t0})
	}
	got := map[string]string{}
	for _, taken := range w.take(t0, 10) {
		got[taken.Event.ID] = string(taken.Event.Body)
	}
	if diff := cmp.Diff(bodies, got); diff != "" {
		t.Error(diff)
	}
	var broken int
	err := w.db.QueryRow(t.Context(), `SELECT count(*) FROM reconciler.events e JOIN reconciler.blobs b ON b.id = e.blob_id
		WHERE e.body_hash <> sha256(b.salt || b.bytes)`).Scan(&broken)
	if err != nil || broken != 0 {
		t.Errorf("%d hashes do not fit: %v", broken, err)
	}
}

func TestWhatCannotBeAnEventsNameIsRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*recon.Event){
		"without id":         func(e *recon.Event) { e.ID = "" },
		"NUL in the id":      func(e *recon.Event) { e.ID = "evt_\x00" },
		"broken text":        func(e *recon.Event) { e.Type = "refund\xff" },
		"a long account":     func(e *recon.Event) { e.Account = strings.Repeat("a", 256) },
		"without type":       func(e *recon.Event) { e.Type = "" },
		"without body":       func(e *recon.Event) { e.Body = nil },
		"the year 1970":      func(e *recon.Event) { e.CreatedAt = time.Unix(0, 0) },
		"the year 40000":     func(e *recon.Event) { e.CreatedAt = time.Unix(1_200_000_000_000, 0) },
		"no instant was set": func(e *recon.Event) { e.CreatedAt = time.Time{} },
	} {
		e := event("evt_1")
		change(&e)
		if inbox.Check(e) == nil {
			t.Errorf("%s passes", name)
		}
	}
	placeless := event("evt_1")
	placeless.Account, placeless.Mode = "", ""
	for _, e := range []recon.Event{event("evt_1"), placeless} {
		if err := inbox.Check(e); err != nil {
			t.Errorf("%+v: %v", e, err)
		}
	}
}

func TestASignedEventReplacesAForgedOneOfTheSameName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	forged, real := event("evt_1"), event("evt_1")
	forged.Signed, forged.Type, forged.Body = false, "refund.failed", []byte(`{"forged":true}`)
	w.receive(inbox.Delivery{Event: forged, At: t0})
	taken := w.take(t0, 1)
	if len(taken) != 1 || taken[0].Event.Signed {
		t.Fatalf("taken %+v", taken)
	}
	w.receive(inbox.Delivery{Event: real, At: t0.Add(time.Second), Fetched: true})
	w.finish(t0, inbox.Ending{Of: taken[0]}) // late: it was about the forged one
	w.receive(inbox.Delivery{Event: forged, At: t0.Add(2 * time.Second)})
	again := w.take(t0.Add(time.Minute), 1)
	if len(again) != 1 || !again[0].Event.Signed || again[0].Event.Type != real.Type || string(again[0].Event.Body) != string(real.Body) {
		t.Fatalf("taken again %+v", again)
	}
	if rows := w.list(inbox.Filter{}); rows[0].Deliveries != 2 {
		t.Errorf("deliveries %d, want 2: a reading of the provider's list is none", rows[0].Deliveries)
	}
}

func TestASignedEventReplacesAForgedOneThatCameTogetherWithIt(t *testing.T) {
	t.Parallel()
	for name, signedFirst := range map[string]bool{"after": false, "before": true} {
		w := newWorld(t)
		forged, real := event("evt_1"), event("evt_1")
		forged.Signed, forged.Type, forged.Body = false, "refund.failed", []byte(`{"forged":true}`)
		both := []inbox.Delivery{{Event: forged, At: t0}, {Event: real, At: t0}}
		if signedFirst {
			slices.Reverse(both)
		}
		w.receive(both...)
		taken := w.take(t0, 2)
		if len(taken) != 1 || !taken[0].Event.Signed || taken[0].Event.Type != real.Type || string(taken[0].Event.Body) != string(real.Body) {
			t.Errorf("signed %s: taken %+v", name, taken)
		}
		if rows := w.list(inbox.Filter{}); rows[0].Deliveries != 2 {
			t.Errorf("signed %s: deliveries %d, want 2", name, rows[0].Deliveries)
		}
	}
}

func TestStoringWaitsForTheDiskAlsoWhereTheDatabaseDoesNot(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{"off": "on", "local": "on", "on": "on", "remote_apply": "remote_apply"} {
		w := newWorld(t)
		for _, sql := range []string{
			`CREATE TABLE public.noted (setting text)`,
			`GRANT INSERT ON public.noted TO PUBLIC`,
			`CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS
				$$ BEGIN INSERT INTO public.noted VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$`,
			`CREATE TRIGGER note AFTER INSERT ON reconciler.events FOR EACH ROW EXECUTE FUNCTION public.note()`,
			`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = ` + setting + `', current_database()); END $$`,
		} {
			if _, err := w.db.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		// The connections of before know nothing of the setting.
		l, err := ledger.Open(t.Context(), ledger.Options{URL: w.db.Config().ConnString()})
		if err != nil {
			t.Fatal(err)
		}
		_, err = inbox.Open(l).Receive(t.Context(), inbox.Delivery{Event: event("evt_1"), At: t0})
		l.Close()
		var noted string
		if err = errors.Join(err, w.db.QueryRow(t.Context(), `SELECT setting FROM public.noted`).Scan(&noted)); err != nil || noted != want {
			t.Errorf("%s: stored under %q (%v), want %s", setting, noted, err, want)
		}
	}
}

// PostgreSQL answers as if all were well where somebody ends the wait of a commit.
func TestAnEventThatIsPerhapsNotOnTheStandbyIsNotTaken(t *testing.T) {
	t.Parallel()
	server := pgtest.WaitForStandby(t)
	l, err := ledger.Open(t.Context(), ledger.Options{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	box := inbox.Open(l)
	for _, delivery := range []string{"the first", "a repeat"} {
		answer := make(chan error, 1)
		go func() {
			_, err := box.Receive(t.Context(), inbox.Delivery{Event: event("evt_1"), At: t0})
			answer <- err
		}()
		server.End("pg_cancel_backend")
		err := <-answer
		if fault, ok := errors.AsType[*ledger.Fault](err); !ok || fault.Kind != ledger.FaultUnconfirmed {
			t.Errorf("%s: %v", delivery, err)
		}
	}
	server.Arrive()
	if got, err := box.Receive(t.Context(), inbox.Delivery{Event: event("evt_1"), At: t0}); err != nil || got[0] != inbox.Repeated {
		t.Errorf("sent again: %v, %v", got, err)
	}
}

func TestARepeatOfWhatIsOverIsWorkedOnNoMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receive(inbox.Delivery{Event: event("evt_done"), At: t0}, inbox.Delivery{Event: event("evt_ignored"), At: t0, Foreign: true})
	w.finish(t0, inbox.Ending{Of: w.take(t0, 10)[0]})
	later := t0.Add(time.Hour)
	for range 2 {
		for _, r := range w.receive(inbox.Delivery{Event: event("evt_done"), At: later}, inbox.Delivery{Event: event("evt_ignored"), At: later}) {
			if r != inbox.Repeated {
				t.Errorf("a repeat is %s", r)
			}
		}
	}
	if taken := w.take(later, 10); len(taken) != 0 {
		t.Errorf("worked on again: %+v", taken)
	}
}

func TestEventsAreTakenOnceAndComeBackWhenTheirTakerDied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var want []string
	for n := range 40 {
		id := fmt.Sprintf("evt_%02d", n)
		want = append(want, id)
		w.receive(inbox.Delivery{Event: event(id), At: t0})
	}
	other := event("evt_other")
	other.Source = "stripe-shops"
	w.receive(inbox.Delivery{Event: other, At: t0})
	foreign := event("evt_foreign")
	foreign.Mode = "test"
	w.receive(inbox.Delivery{Event: foreign, At: t0, Foreign: true})
	var mu sync.Mutex
	var got []inbox.Taken
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				taken, err := w.inbox.Take(t.Context(), source, t0, 30*time.Second, 7)
				if err != nil {
					t.Error(err)
				}
				if len(taken) == 0 {
					return
				}
				mu.Lock()
				got = append(got, taken...)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if diff := cmp.Diff(want, ids(got)); diff != "" {
		t.Errorf("taken (-want +got):\n%s", diff)
	}
	for _, taken := range got[1:] {
		w.finish(t0, inbox.Ending{Of: taken})
	}
	late := w.take(t0.Add(30*time.Second), 100)
	if diff := cmp.Diff([]string{got[0].Event.ID}, ids(late)); diff != "" || late[0].Attempt != 2 {
		t.Errorf("after the lease (-want +got):\n%s", diff)
	}
}

func TestB52_WhatFailsIsTriedLaterAndLaterAndThenShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receive(inbox.Delivery{Event: event("evt_poison"), At: t0})
	now, last := t0, time.Duration(0)
	for attempt := 1; attempt <= inbox.MaxAttempts; attempt++ {
		taken := w.take(now, 1)
		if len(taken) != 1 || taken[0].Attempt != attempt {
			t.Fatalf("attempt %d: %+v", attempt, taken)
		}
		w.finish(now, inbox.Ending{Of: taken[0], Err: errors.New("a field is no number")})
		row := w.list(inbox.Filter{})[0]
		if attempt == inbox.MaxAttempts {
			break
		}
		wait := row.NextTry.Sub(now)
		if row.State != inbox.Waiting || wait < last || wait > time.Hour {
			t.Fatalf("after attempt %d: %s, again in %s", attempt, row.State, wait)
		}
		if len(w.take(now.Add(wait-time.Second), 1)) != 0 {
			t.Fatalf("attempt %d: taken before its time", attempt)
		}
		now, last = row.NextTry, wait
	}
	rows := w.list(inbox.Filter{States: []inbox.State{inbox.Failed}})
	if len(rows) != 1 || rows[0].LastError != "a field is no number" || rows[0].Attempts != inbox.MaxAttempts {
		t.Fatalf("failed: %+v", rows)
	}
	if len(w.take(now.Add(365*24*time.Hour), 1)) != 0 {
		t.Error("taken after it was given up")
	}
	replayed, err := w.inbox.Replay(t.Context(), inbox.Filter{States: []inbox.State{inbox.Failed}}, now)
	if err != nil || replayed.Replayed != 1 {
		t.Fatalf("%+v, %v", replayed, err)
	}
	if taken := w.take(now, 1); len(taken) != 1 || taken[0].Attempt != 1 {
		t.Errorf("after the replay %+v", taken)
	}
}

func TestEventsAreChosenByIDTypeTimeAndState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n, typ := range []string{"refund.created", "refund.updated", "payout.paid", "refund_x.created"} {
		e := event(fmt.Sprintf("evt_%d", n))
		e.Type = typ
		w.receive(inbox.Delivery{Event: e, At: t0.Add(time.Duration(n) * time.Hour)})
	}
	for name, c := range map[string]struct {
		filter inbox.Filter
		want   string
	}{
		"all, newest first": {inbox.Filter{}, "evt_3 evt_2 evt_1 evt_0"},
		"by id":             {inbox.Filter{IDs: []string{"evt_2", "evt_0"}}, "evt_2 evt_0"},
		"by type":           {inbox.Filter{Type: "payout.paid"}, "evt_2"},
		"by types":          {inbox.Filter{Type: "refund.*"}, "evt_1 evt_0"},
		"no wildcards else": {inbox.Filter{Type: "refund_*"}, "evt_3"},
		"by time":           {inbox.Filter{From: t0.Add(time.Hour), To: t0.Add(3 * time.Hour)}, "evt_2 evt_1"},
		"by state":          {inbox.Filter{States: []inbox.State{inbox.Done}}, ""},
		"by source":         {inbox.Filter{Source: "other"}, ""},
		"at most":           {inbox.Filter{Limit: 1}, "evt_3"},
	} {
		var got []string
		for _, r := range w.list(c.filter) {
			got = append(got, r.ID)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}

func TestOldBytesAreDroppedOfWhatWasTakenInOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receive(inbox.Delivery{Event: event("evt_done"), At: t0})
	w.finish(t0, inbox.Ending{Of: w.take(t0, 1)[0]})
	w.receive(inbox.Delivery{Event: event("evt_new"), At: t0}, inbox.Delivery{Event: event("evt_young"), At: t0.Add(2 * time.Hour)})
	n, err := w.inbox.DropBytes(t.Context(), t0.Add(time.Hour), t0.Add(2*time.Hour))
	if err != nil || n != 1 {
		t.Fatalf("%d dropped, %v", n, err)
	}
	has := map[string]bool{}
	for _, r := range w.list(inbox.Filter{}) {
		has[r.ID] = r.HasBytes
	}
	if diff := cmp.Diff(map[string]bool{"evt_done": false, "evt_new": true, "evt_young": true}, has); diff != "" {
		t.Error(diff)
	}
	replayed, err := w.inbox.Replay(t.Context(), inbox.Filter{IDs: []string{"evt_done"}}, t0)
	if err != nil || replayed != (inbox.Replayed{NoBytes: 1}) {
		t.Errorf("a replay of what has no bytes: %+v, %v", replayed, err)
	}
	// Delivered once more it is still the same event.
	if got := w.receive(inbox.Delivery{Event: event("evt_done"), At: t0.Add(3 * time.Hour)}); got[0] != inbox.Repeated {
		t.Errorf("%v", got)
	}
}

func TestAFeedRemembersHowFarItWasRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	place := recon.Account{Account: "acct_1", Mode: "live"}
	if _, known, err := w.inbox.Feed(t.Context(), source, place); err != nil || known {
		t.Fatalf("known %v, %v", known, err)
	}
	for _, f := range []inbox.Feed{
		{Source: source, Account: place, ReadTo: t0, To: t0.Add(time.Hour), Cursor: "evt_50"},
		{Source: source, Account: place, ReadTo: t0.Add(time.Hour)},
	} {
		if err := w.inbox.SaveFeed(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		got, known, err := w.inbox.Feed(t.Context(), source, place)
		if err != nil || !known {
			t.Fatalf("known %v, %v", known, err)
		}
		if diff := cmp.Diff(f, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestProcessesTellEachOtherOfNewEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	heard, ended := make(chan struct{}, 10), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		ended <- w.inbox.Listen(ctx, w.db.Config().ConnString(), func() { heard <- struct{}{} })
	}()
	await := func(what string) {
		t.Helper()
		select {
		case <-heard:
		case <-time.After(10 * time.Second):
			t.Fatalf("not heard: %s", what)
		}
	}
	await("what came before")
	if _, err := w.db.Exec(t.Context(), `SELECT pg_notify('reconciler_inbox', 'another tenant')`); err != nil {
		t.Fatal(err)
	}
	if err := w.inbox.Notify(t.Context()); err != nil {
		t.Fatal(err)
	}
	await("a notification")
	select {
	case <-heard:
		t.Error("another tenant's was heard")
	case <-time.After(50 * time.Millisecond):
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("listening ended without an error")
	}
}

func TestDeliveriesThatComeTogetherAreStoredTogetherAndAnsweredEach(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	writer := inbox.NewWriter(w.inbox)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); writer.Run(ctx) }()
	var mu sync.Mutex
	counts := map[inbox.Receipt]int{}
	var all sync.WaitGroup
	for n := range 200 {
		all.Go(func() {
			e := event(fmt.Sprintf("evt_%d", n/2)) // each twice
			if n == 7 {                            // the table refuses it
				e.ID, e.CreatedAt = "evt_impossible", time.Time{}
			}
			got, err := writer.Receive(t.Context(), inbox.Delivery{Event: e, At: t0})
			if (err != nil) != (n == 7) {
				t.Errorf("%d: %v", n, err)
			}
			mu.Lock()
			defer mu.Unlock()
			counts[got]++
		})
	}
	all.Wait()
	if diff := cmp.Diff(map[inbox.Receipt]int{inbox.Stored: 100, inbox.Repeated: 99, "": 1}, counts); diff != "" {
		t.Error(diff)
	}
	if rows := w.list(inbox.Filter{Limit: 1000}); len(rows) != 100 {
		t.Errorf("%d events", len(rows))
	}
	stop()
	<-ended
	if _, err := writer.Receive(t.Context(), inbox.Delivery{Event: event("evt_late"), At: t0}); !errors.Is(err, inbox.ErrStopped) {
		t.Errorf("after the end: %v", err)
	}
}

func TestADeliveryThatWaitsForALockHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receive(inbox.Delivery{Event: event("evt_locked"), At: t0})
	tx, err := w.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT FROM reconciler.events WHERE id = 'evt_locked' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	writer := inbox.NewWriter(w.inbox)
	ctx, stop := context.WithCancel(t.Context())
	var running, waiting sync.WaitGroup
	running.Go(func() { writer.Run(ctx) })
	receive := func(id string, want inbox.Receipt) {
		if got, err := writer.Receive(t.Context(), inbox.Delivery{Event: event(id), At: t0}); got != want || err != nil {
			t.Errorf("%s: %s, %v", id, got, err)
		}
	}
	waiting.Go(func() { receive("evt_locked", inbox.Repeated) })
	for blocked := 0; blocked == 0; { // the repeat is under way and waits
		err := w.db.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&blocked)
		if err != nil {
			t.Fatal(err)
		}
	}
	receive("evt_1", inbox.Stored)
	receive("evt_2", inbox.Stored)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	waiting.Wait()
	stop()
	running.Wait()
}

func TestAnEventThatKillsWhoeverTakesItTakesNoOthersWithItAndIsGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, id := range []string{"evt_deadly", "evt_1", "evt_2"} {
		w.receive(inbox.Delivery{Event: event(id), At: t0})
	}
	now, deaths := t0, 0
	for range 100 {
		for taken := w.take(now, 10); len(taken) > 0; taken = w.take(now, 10) {
			if !slices.Contains(ids(taken), "evt_deadly") {
				for _, one := range taken {
					w.finish(now, inbox.Ending{Of: one})
				}
				continue
			}
			if deaths++; deaths > 2 && len(taken) > 1 {
				t.Fatalf("death %d takes %d with it", deaths, len(taken)-1)
			}
			break // and nobody says how it ended
		}
		now = now.Add(time.Minute)
	}
	states := map[string]inbox.State{}
	for _, r := range w.list(inbox.Filter{}) {
		states[r.ID] = r.State
		if r.ID == "evt_deadly" && !strings.Contains(r.LastError, "never finished") {
			t.Errorf("it says %q", r.LastError)
		}
	}
	if diff := cmp.Diff(map[string]inbox.State{"evt_deadly": inbox.Failed, "evt_1": inbox.Done, "evt_2": inbox.Done}, states); diff != "" {
		t.Error(diff)
	}
	if deaths != inbox.MaxAttempts {
		t.Errorf("%d deaths, want %d", deaths, inbox.MaxAttempts)
	}
}
