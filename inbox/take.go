package inbox

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const (
	// MaxAttempts is how often taking an event in is tried before it is given up. With
	// its waits that is about four hours.
	MaxAttempts = 12
	firstWait   = 5 * time.Second
	longestWait = time.Hour
	// maxError bounds what is kept of an error.
	maxError = 1000
)

// Taken is one event that was taken to be worked on.
type Taken struct {
	Event      recon.Event // Body is nil where the bytes were dropped
	ReceivedAt time.Time
	Attempt    int // this one counted
}

//go:embed sql/take.sql
var takeSQL string

// alone is after how many attempts an event is taken by itself: if it kills whoever works
// on it, it takes no others with it.
const alone = 2

// givenUp is said of an event whose last attempt never ended.
const givenUp = "it was taken again and again and never finished: it may end the process that works on it"

// Take gives at most limit events of a source that are due, and keeps them from others
// until now + lease. Each taking counts as an attempt, so that an event which kills the
// process that works on it is given up like any other that fails; after two attempts it
// is taken alone. None means that nothing is due.
func (s *Store) Take(ctx context.Context, source recon.SourceName, now time.Time, lease time.Duration, limit int) ([]Taken, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	taken, err := s.take(ctx, source, now, lease, portion{most: limit, below: alone})
	for err == nil && len(taken) == 0 {
		var some int
		if taken, some, err = s.takeOne(ctx, source, now, lease); some == 0 {
			break
		}
	}
	return taken, s.fault("take events of "+string(source), err)
}

// takeOne takes one event that was tried before. Some is how many were looked at: one that
// is given up is not worked on.
func (s *Store) takeOne(ctx context.Context, source recon.SourceName, now time.Time, lease time.Duration) (taken []Taken, some int, err error) {
	all, err := s.take(ctx, source, now, lease, portion{most: 1, from: alone, below: math.MaxInt32})
	for _, t := range all {
		if t.Attempt <= MaxAttempts {
			taken = append(taken, t)
		}
	}
	return taken, len(all), err
}

// portion says which events are taken: how many, and tried how often before.
type portion struct{ most, from, below int }

func (s *Store) take(ctx context.Context, source recon.SourceName, now time.Time, lease time.Duration, p portion) ([]Taken, error) {
	rows, err := s.pool.Query(ctx, takeSQL, s.tenant, string(source), stored(now), stored(now.Add(lease)), p.most, p.from, p.below, MaxAttempts, givenUp)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Taken, error) {
		t := Taken{Event: recon.Event{Source: source}}
		e := &t.Event
		err := row.Scan(&e.System, &e.Account, &e.Mode, &e.ID, &e.Type, &e.Signed, &e.CreatedAt, &t.ReceivedAt, &t.Attempt, &e.Body)
		e.CreatedAt, t.ReceivedAt = e.CreatedAt.UTC(), t.ReceivedAt.UTC()
		return t, err
	})
}

// Only a state that is worked on ends: a signed event that replaced an unsigned one
// meanwhile is new again and stays so.
const finishSQL = `
UPDATE reconciler.events e
SET state = r.state, done_at = CASE WHEN r.state = 'done' THEN $2::timestamptz END, last_error = nullif(r.error, ''),
	next_try = CASE WHEN r.state = 'waiting' THEN r.next_try ELSE e.next_try END,
	about = CASE WHEN r.about = '' THEN e.about ELSE string_to_array(r.about, chr(31)) END
FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::timestamptz[], $10::integer[], $11::text[])
	AS r (system, account, mode, id, state, error, next_try, attempt, about)
WHERE e.tenant = $1 AND e.system = r.system AND e.account = r.account AND e.mode = r.mode AND e.id = r.id
	AND e.state IN ('new', 'waiting') AND e.attempts = r.attempt`

// Ending is how the work on one event ended.
type Ending struct {
	Of      Taken
	Foreign bool  // it is none of the source's: never to be taken in
	Err     error // nil: done. It is shown to people: without secrets and personal data
	// About are the ids of objects and the references that the event told of, so that its
	// bytes can be erased with them.
	About []string
}

// State says where the event stands after this ending.
func (e Ending) State() State {
	switch {
	case e.Foreign:
		return Ignored
	case e.Err == nil:
		return Done
	case e.Of.Attempt >= MaxAttempts:
		return Failed
	}
	return Waiting
}

// Finish ends the work on events. What failed is tried again later and later, and given
// up after [MaxAttempts]. An event that somebody else took meanwhile is left alone.
func (s *Store) Finish(ctx context.Context, now time.Time, endings []Ending) error {
	if len(endings) == 0 {
		return nil
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	var texts [7][]string
	var next []time.Time
	var attempts []int32
	for _, e := range endings {
		name, fault := NameOf(e.Of.Event), ""
		if e.Err != nil {
			fault = recon.Printable(e.Err.Error())
			fault = fault[:min(len(fault), maxError)]
		}
		for i, v := range []string{name.System, name.Account, name.Mode, name.ID, string(e.State()), fault, aboutText(e.About)} {
			texts[i] = append(texts[i], v)
		}
		next, attempts = append(next, stored(now.Add(waitAfter(e.Of.Attempt)))), append(attempts, int32(e.Of.Attempt))
	}
	_, err := s.pool.Exec(ctx, finishSQL, s.tenant, stored(now), texts[0], texts[1], texts[2], texts[3], texts[4], texts[5], next, attempts, texts[6])
	return s.fault(fmt.Sprintf("finish %d events", len(endings)), err)
}

// separator cannot stand in an id or reference that is text for people.
const separator = "\x1f"

// aboutText is a list as one text: arrays of arrays do not pass to a database.
func aboutText(about []string) string {
	var kept []string
	for _, a := range about {
		if a != "" && len(a) <= maxAbout && !strings.ContainsAny(a, separator+"\x00") && !slices.Contains(kept, a) {
			kept = append(kept, a)
		}
	}
	return strings.Join(kept, separator)
}

// maxAbout bounds one entry; longer texts name nothing of ours.
const maxAbout = 1024

// waitAfter doubles with every attempt.
func waitAfter(attempt int) time.Duration {
	wait := firstWait
	for range attempt - 1 {
		if wait *= 2; wait >= longestWait {
			return longestWait
		}
	}
	return wait
}
