package sweep

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/inbox"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// firstFeedReach is how far back a feed is read that was never read before, at least.
const firstFeedReach = 24 * time.Hour

// FeedInbox is what reading a feed asks of the inbox.
type FeedInbox interface {
	Feed(ctx context.Context, source recon.SourceName, a recon.Account) (inbox.Feed, bool, error)
	SaveFeed(ctx context.Context, f inbox.Feed) error
	Receive(ctx context.Context, list ...inbox.Delivery) ([]inbox.Receipt, error)
}

var _ FeedInbox = (*inbox.Store)(nil)

// FeedSource is a source whose provider lists its events.
type FeedSource interface {
	Name() recon.SourceName
	Sheet() recon.Sheet
	sources.Feeder
}

// Recovery reads what a provider tells of its events itself into the inbox, so that
// deliveries that were missed are taken in like all others. It remembers how far it
// read; one that broke off goes on there.
type Recovery struct {
	Inbox  FeedInbox
	Source FeedSource
	// Oldest gives when the oldest operation of a source was opened, zero where there is
	// none: a feed that was never read is read from there, since what came before concerns
	// nobody. Nil: from a day ago.
	Oldest func(context.Context, recon.SourceName) (time.Time, error)
	// Look is told of every page; nil: nobody is.
	Look func(recon.Look)
}

// Recovered is what was read.
type Recovered struct {
	Windows []FeedWindow
	// Unseen are ranges whose events could not be read, and why. What happened in them is
	// found by listing objects only.
	Unseen []CompareUnseen
}

// FeedWindow is a range of one feed that was read to its end, or as far as it was. It begins
// where the provider's list did.
type FeedWindow struct {
	Account recon.Account
	Window  recon.Window
	Events  int // 0: the provider told of nothing in it
	New     int // of them: no delivery had brought them
}

// New counts the events that no delivery had brought.
func (r Recovered) New() int {
	n := 0
	for _, w := range r.Windows {
		n += w.New
	}
	return n
}

// Run reads all feeds of the source up to now. A provider that does not answer is told as
// unseen and is no error.
func (r *Recovery) Run(ctx context.Context, now func() time.Time) (Recovered, error) {
	var out Recovered
	for _, a := range r.Source.Feeds() {
		if err := r.feed(ctx, a, now, &out); err != nil {
			return out, fmt.Errorf("read the events of %s that %s lists: %w", a.Account, r.Source.Name(), err)
		}
	}
	return out, nil
}

// feed reads one feed: first the window that broke off, then what came since.
func (r *Recovery) feed(ctx context.Context, a recon.Account, now func() time.Time, out *Recovered) error {
	at := now().UTC().Truncate(time.Microsecond) // as it is remembered: a cursor is good for its window only
	place, known, err := r.Inbox.Feed(ctx, r.Source.Name(), a)
	if err != nil {
		return err
	}
	if !known {
		if place.ReadTo, err = r.first(ctx, at); err != nil {
			return err
		}
	}
	if !place.To.IsZero() {
		read, err := r.window(ctx, &place, now, out)
		if err != nil || !read {
			return err
		}
	}
	ability, _ := r.Source.Sheet().Ability(recon.ByChanges)
	if known {
		place.ReadTo = place.ReadTo.Add(-recon.ClockSkew - ability.Lag.Std()) // what was listed late is not passed over
	}
	if !place.ReadTo.Before(at) {
		place.ReadTo = at.Add(-firstFeedReach) // the clock was ahead then; what is read twice changes nothing
	}
	place.To = at
	_, err = r.window(ctx, &place, now, out)
	return err
}

// first is where a feed is read from that was never read.
func (r *Recovery) first(ctx context.Context, at time.Time) (time.Time, error) {
	from := at.Add(-firstFeedReach)
	if r.Oldest == nil {
		return from, nil
	}
	oldest, err := r.Oldest(ctx, r.Source.Name())
	if err != nil || oldest.IsZero() {
		return from, err
	}
	if oldest = oldest.Add(-recon.ClockSkew); oldest.Before(from) {
		from = oldest
	}
	return from, nil
}

// window reads a feed's window from its cursor, and reports whether it is done with: read to
// its end, or to where the provider's list ends by now.
func (r *Recovery) window(ctx context.Context, place *inbox.Feed, now func() time.Time, out *Recovered) (bool, error) {
	asked := recon.Window{From: place.ReadTo, To: place.To}
	read := FeedWindow{Account: place.Account, Window: asked}
	resumed, gone := place.Cursor != "", false
	defer func() {
		if !gone || read.Events > 0 { // else nothing of it was read now
			out.Windows = append(out.Windows, read)
		}
	}()
	for {
		page, err := r.Source.Events(ctx, place.Account, asked, place.Cursor, now)
		if resumed && ctx.Err() == nil && (err != nil || page.Look.Fault == string(sources.OwnBug)) {
			place.Cursor, resumed = "", false // the cursor of another day is known no more: from the start
			continue
		}
		if err != nil {
			return false, err
		}
		if r.Look != nil {
			r.Look(page.Look)
		}
		gone = r.gone(page.Look)
		if page.Look.Outcome == recon.Blind && !gone {
			r.unseen(asked, "its events could not be read: "+recon.FaultText(page.Look.Fault), out)
			return false, nil
		}
		resumed = false
		if err := r.save(ctx, page.Events, now(), &read); err != nil {
			return false, err
		}
		if place.Cursor = page.Next; gone || page.Next == "" {
			read.Window.From = r.listed(page.Look, gone, asked.From, out)
			place.ReadTo, place.To, place.Cursor = asked.To, time.Time{}, ""
		}
		if err := r.Inbox.SaveFeed(ctx, *place); err != nil || place.To.IsZero() {
			return err == nil, err
		}
	}
}

// gone reports that all that is left to read of a window is older than what the provider
// lists. Asking again will never show it; what came since is still to be had.
func (r *Recovery) gone(look recon.Look) bool {
	history := r.history()
	// The provider counts in whole seconds.
	return look.Outcome == recon.Blind && look.Fault == string(sources.Unsupported) && history > 0 &&
		!look.Window.To.After(look.At.Add(-history).Add(time.Second))
}

// listed is where the provider's list ends at the last page of a window, no earlier than the
// window begins. What lies before is told as unseen.
func (r *Recovery) listed(last recon.Look, gone bool, from time.Time, out *Recovered) time.Time {
	end := last.Window.From
	if gone {
		end = last.Window.To
	}
	if !from.Before(end) {
		return from
	}
	r.unseen(recon.Window{From: from, To: end}, fmt.Sprintf("the provider lists events of the last %s only", recon.Duration(r.history()).Text()), out)
	return end
}

// history is how far back the provider lists events; 0: for ever.
func (r *Recovery) history() time.Duration {
	ability, _ := r.Source.Sheet().Ability(recon.ByChanges)
	return ability.History.Std()
}

func (r *Recovery) unseen(w recon.Window, why string, out *Recovered) {
	out.Unseen = append(out.Unseen, CompareUnseen{Source: r.Source.Name(), From: w.From, To: w.To, Why: why})
}

// save stores a page of events. One that cannot be stored could not have been delivered
// either.
func (r *Recovery) save(ctx context.Context, events []recon.Event, at time.Time, read *FeedWindow) error {
	sheet := r.Source.Sheet()
	var list []inbox.Delivery
	for _, e := range events {
		if inbox.Check(e) == nil {
			list = append(list, inbox.Delivery{Event: e, At: at, Fetched: true, Foreign: !sheet.Has(e.Account, e.Mode)})
		}
	}
	receipts, err := r.Inbox.Receive(ctx, list...)
	read.Events += len(events)
	for _, got := range receipts {
		if got == inbox.Stored {
			read.New++
		}
	}
	return err
}
