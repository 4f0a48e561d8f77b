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

// FeedWindow is a range of one feed that was read to its end, or as far as it was.
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
	if history := ability.History.Std(); history > 0 && place.ReadTo.Before(at.Add(-history)) {
		out.Unseen = append(out.Unseen, CompareUnseen{
			Source: r.Source.Name(), From: place.ReadTo, To: at.Add(-history),
			Why: fmt.Sprintf("the provider lists events of the last %s only", recon.Duration(history).Text()),
		})
		place.ReadTo = at.Add(-history)
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

// window reads a feed's window from its cursor, and reports whether it came to its end.
func (r *Recovery) window(ctx context.Context, place *inbox.Feed, now func() time.Time, out *Recovered) (bool, error) {
	read := FeedWindow{Account: place.Account, Window: recon.Window{From: place.ReadTo, To: place.To}}
	defer func() { out.Windows = append(out.Windows, read) }()
	resumed := place.Cursor != ""
	for {
		page, err := r.Source.Events(ctx, place.Account, read.Window, place.Cursor, now)
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
		if page.Look.Outcome == recon.Blind {
			out.Unseen = append(out.Unseen, CompareUnseen{
				Source: r.Source.Name(), From: read.Window.From, To: read.Window.To, Why: "its events could not be read: " + recon.FaultText(page.Look.Fault),
			})
			return false, nil
		}
		resumed = false
		if err := r.save(ctx, page.Events, now(), &read); err != nil {
			return false, err
		}
		if place.Cursor = page.Next; page.Next == "" {
			place.ReadTo, place.To = place.To, time.Time{}
		}
		if err := r.Inbox.SaveFeed(ctx, *place); err != nil || page.Next == "" {
			return err == nil, err
		}
	}
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
