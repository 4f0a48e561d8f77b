package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

const (
	// holdAtMost is how long an audit keeps the source before it lets a sweep in: open
	// operations go before it.
	holdAtMost = 15 * time.Second
	// nightPatience is how long a scheduled audit waits for a source that others hold.
	nightPatience = 15 * time.Minute
	// pageTries is how often one page is asked for before its list is given up for this
	// run. A provider that hiccups once in ten thousand pages must not cost the night.
	pageTries = 3
)

// defaultPause is the wait before the second try of a page; the third waits four times as long.
const defaultPause = 250 * time.Millisecond

// states reads how far each list was read.
func (u *audit) states(ctx context.Context) (map[sources.List]ledger.ListState, error) {
	list, err := u.of.Accounts.ListStates(ctx, u.out.Source)
	states := make(map[sources.List]ledger.ListState, len(list))
	for _, st := range list {
		states[sources.List{Kind: st.Kind, Account: st.Account, Mode: st.Mode}] = st
	}
	return states, err
}

// list reads every list of the source. What a run left in the middle is read to its end
// first, from where it stopped. What cannot be read is told as unseen.
func (u *audit) list(ctx context.Context) error {
	defer func() { u.at = u.options.Now() }()
	lister, can := u.Source.(sources.Lister)
	if !can {
		return nil // see unseenBy
	}
	if err := u.take(ctx); err != nil {
		return err
	}
	if err := u.probe(ctx); err != nil {
		return err
	}
	states, err := u.states(ctx)
	if err != nil {
		return err
	}
	for _, l := range u.toList() {
		st, known := states[l]
		if !known {
			st = ledger.ListState{Kind: l.Kind, Account: l.Account, Mode: l.Mode}
		}
		r := &reading{audit: u, lister: lister, list: l, state: st}
		if err := r.all(ctx); err != nil {
			return err
		}
	}
	return nil
}

// reading is one list under way.
type reading struct {
	*audit
	lister sources.Lister
	list   sources.List
	state  ledger.ListState
	found  bool // any effect
	// gap: something that a page showed could not be stored. What is stored is not all that
	// was seen, so that the list answers for nothing, and the next run begins where it is complete.
	gap bool
	// apart: what is read leaves a gap behind what is complete, or may.
	apart bool
}

// all reads what an earlier run left, and then what this one needs.
func (r *reading) all(ctx context.Context) error {
	// As it is remembered: a cursor is good for its window only.
	wanted := recon.Window{From: r.span.listed.From.UTC().Truncate(time.Microsecond), To: r.span.listed.To.UTC().Truncate(time.Microsecond)}
	if left := r.state.Window; !left.IsZero() {
		// Somebody may have given the window that an earlier run left.
		r.apart = r.span.given || left.From.After(wanted.From)
		done, err := r.window(ctx)
		if err != nil || !done {
			return err
		}
		if !left.From.After(wanted.From) {
			if !left.To.Before(wanted.To) {
				return nil
			}
			wanted.From = later(wanted.From, left.To.Add(-2*overlap)) // only the rest is missing
		}
	}
	r.state.Window, r.state.Cursor, r.state.BeganAt = wanted, "", r.options.Now()
	r.apart = r.span.given
	_, err := r.window(ctx)
	return err
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// window reads the list's window from its cursor, and reports whether it came to its end.
func (r *reading) window(ctx context.Context) (bool, error) {
	resumed := r.state.Cursor != ""
	for {
		if down(r.pass.state) {
			r.blind(recon.Look{Fault: r.fault, Detail: r.detail})
			return false, nil
		}
		page, err := r.page(ctx)
		if resumed && ctx.Err() == nil && (err != nil || page.Look.Fault == string(sources.OwnBug)) {
			r.state.Cursor, resumed = "", false // the cursor of another day is known no more: from the start
			continue
		}
		if err != nil {
			return false, fmt.Errorf("list %s: %w", r.list.Kind, err)
		}
		if page.Look.Outcome == recon.Blind {
			return false, r.giveUp(ctx, page)
		}
		resumed = false
		if err := r.save(ctx, page); err != nil {
			return false, err
		}
		if page.Next == "" {
			return true, nil
		}
		if err := r.breathe(ctx); err != nil {
			return false, err
		}
	}
}

// page asks for the next page, a few times where the provider does not answer.
func (r *reading) page(ctx context.Context) (sources.Page, error) {
	for try, wait := 1, cmp.Or(r.of.Pause, defaultPause); ; try, wait = try+1, 4*wait {
		page, err := r.lister.Page(ctx, r.list, r.state.Window, r.state.Cursor, r.options.Now)
		if err != nil {
			return page, err
		}
		r.heardOf(page.Look)
		if page.Look.Outcome != recon.Blind || try == pageTries || !passes(page.Look.Fault) {
			return page, nil
		}
		select {
		case <-ctx.Done():
			return page, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// passes reports whether a fault may be gone with the next try.
func passes(fault string) bool {
	switch sources.Kind(fault) {
	case sources.Unavailable, sources.Timeout, sources.RateLimited, sources.Truncated:
		return true
	}
	return false
}

// heardOf takes from a page's look what it cost.
func (r *reading) heardOf(l recon.Look) {
	r.out.ProviderCalls += l.Calls
	if r.Watch.Look != nil {
		r.Watch.Look(l)
	}
}

// save records a page in one transaction with its links and the place where the list goes
// on. The last page also records that the whole window was seen.
func (r *reading) save(ctx context.Context, page sources.Page) error {
	now := r.options.Now()
	batch := ledger.Batch{Hold: r.pass.held(), RunID: r.run.ID, Now: now, Looks: []recon.Look{page.Look}, Effects: page.Effects}
	for _, raw := range page.Raw {
		batch.Raw = append(batch.Raw, ledger.Raw(raw))
	}
	if err := r.link(ctx, &batch); err != nil {
		return err
	}
	r.found = r.found || len(page.Effects) > 0
	next, whole, err := r.onwards(page, &batch)
	if err != nil {
		return err
	}
	r.pass.state.Blinds, r.pass.state.BlindSince, r.pass.state.ProbeAt = 0, time.Time{}, time.Time{}
	r.tellHealth(&batch)
	recorded, err := r.Ledger.Record(ctx, batch)
	if err != nil {
		return fmt.Errorf("save a page of %d effects: %w", len(page.Effects), err)
	}
	r.remember(recorded)
	if len(recorded.LeftOut)+len(recorded.SetAside) > 0 {
		r.lacks(refused(recorded, batch.Decisions))
		next = r.state // nothing is finished
		next.Cursor = page.Next
	} else if whole != nil {
		r.seen = append(r.seen, *whole)
	}
	r.state = next
	return r.step("page")
}

// lacks notes that a page showed what cannot be stored, and tells of the first.
func (r *reading) lacks(ids []recon.EffectIdentity) {
	if !r.gap {
		r.gap = true
		r.result.unseen(r.list, r.span.counted, "the ledger cannot store what it shows: "+idsOf(ids))
	}
}

// onwards puts into a page's batch where its list goes on. The last page also brings word
// that the whole window was seen, unless something of it could not be stored.
func (r *reading) onwards(page sources.Page, b *ledger.Batch) (next ledger.ListState, whole *recon.Look, err error) {
	next = r.state
	next.Cursor = page.Next
	kept := r.place(next)
	if page.Next == "" && !r.gap {
		l, err := r.whole()
		if err != nil {
			return next, nil, err
		}
		b.Looks = append(b.Looks, l)
		b.Coverage = []recon.Coverage{coverageOf(l)}
		kept = finished(next, r.lag(), r.apart)
		next, whole = kept, &l
	}
	b.List = &kept
	return next, whole, nil
}

// place is where the next run goes on: at the cursor, unless what cannot be stored lies before it.
func (r *reading) place(at ledger.ListState) ledger.ListState {
	if r.gap {
		at.Window, at.Cursor, at.BeganAt = recon.Window{}, "", time.Time{}
	}
	return at
}

// whole is the look that a list read to its end is: it was made when its first page was
// asked for. What its pages found stands in their own looks.
func (r *reading) whole() (recon.Look, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return recon.Look{}, fmt.Errorf("name a look: %w", err)
	}
	l := recon.Look{
		ID: id.String(), Source: r.out.Source, Method: recon.ByList, Outcome: recon.Absent, Complete: true,
		Kind: r.list.Kind, Account: r.list.Account, Mode: r.list.Mode, Window: r.state.Window, At: r.state.BeganAt,
	}
	if r.found {
		l.Outcome = recon.Found
	}
	if l.Window.To.After(l.At) {
		l.Window.To = l.At
	}
	return l, nil
}

// giveUp ends a list that cannot be read on now. The next run goes on at its place.
func (r *reading) giveUp(ctx context.Context, page sources.Page) error {
	r.pass.fault, r.pass.detail = page.Look.Fault, page.Look.Detail
	if _, blind := blindAnswer(sources.Answer{Looks: []recon.Look{page.Look}}, r.Source.Sheet()); blind {
		r.pass.state = afterBlind(r.pass.state, r.options.Now())
	}
	st := r.place(r.state)
	batch := ledger.Batch{Hold: r.pass.held(), RunID: r.run.ID, Now: r.options.Now(), Looks: []recon.Look{page.Look}, List: &st}
	r.tellHealth(&batch)
	recorded, err := r.Ledger.Record(ctx, batch)
	if err != nil {
		return fmt.Errorf("record that a list broke off: %w", err)
	}
	r.remember(recorded)
	r.blind(page.Look)
	return r.step("blind page")
}

// blind tells that the list was not read: its whole window is unseen.
func (r *reading) blind(l recon.Look) {
	why := recon.FaultText(l.Fault)
	if l.Fault == "" {
		why = "it does not answer"
	}
	if l.Detail != "" {
		why += " (" + l.Detail + ")"
	}
	r.result.unseen(r.list, r.span.counted, why)
}

// breathe gives the source back for a moment when it was held for long, so that a sweep
// that waits for it looks after open operations.
func (u *audit) breathe(ctx context.Context) error {
	if time.Since(u.since) < holdAtMost {
		return nil
	}
	if err := u.giveBack(ctx); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(2 * askAgain):
	}
	return u.take(ctx)
}

// take takes the source. A scheduled audit waits for it for long: it would lose its night.
func (u *audit) take(ctx context.Context) error {
	for began := time.Now(); ; {
		hold, err := u.takeSource(ctx)
		var held *ledger.HeldError
		if errors.As(err, &held) && u.options.Tick != "" && time.Since(began) < nightPatience {
			continue
		}
		if err != nil {
			return err
		}
		u.mu.Lock()
		u.hold = hold
		u.mu.Unlock()
		u.since = time.Now()
		u.state, err = u.Ledger.SourceState(ctx, u.out.Source)
		u.pass.told = u.state
		return err
	}
}

// complete notes how far a source is accounted for that cannot be listed: its imports
// covered the window. Lists note it by themselves.
func (u *audit) complete(ctx context.Context) error {
	if u.lists() || len(u.result.Unseen) > 0 {
		return nil
	}
	states, err := u.states(ctx)
	if err != nil {
		return err
	}
	st := states[sources.List{}]
	st.Window, st.BeganAt = u.span.counted, u.at
	st = finished(st, u.lag(), u.span.given)
	if err := u.take(ctx); err != nil {
		return err
	}
	if _, err := u.Ledger.Record(ctx, ledger.Batch{Hold: u.pass.held(), RunID: u.run.ID, Now: u.at, List: &st}); err != nil {
		return fmt.Errorf("note how far it is accounted for: %w", err)
	}
	return u.giveBack(ctx)
}

// giveBack gives the source back: nobody is asked now.
func (u *audit) giveBack(ctx context.Context) error {
	u.mu.Lock()
	hold := u.hold
	u.hold = ledger.Hold{}
	u.mu.Unlock()
	if hold.Source == "" {
		return nil
	}
	return u.Ledger.ReleaseSource(ctx, hold)
}
