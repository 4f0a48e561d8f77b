package sweep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/inbox"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

const (
	// intakeBatch is how many events are taken, stored and concluded from together.
	intakeBatch = 200
	// intakeLease is how long taken events are kept from others. An event whose taker died
	// is taken again after it.
	intakeLease = 2 * time.Minute
	// appearedReach is how far back the first pass looks for operations that came after
	// their effects; a later pass looks back to the one before, and appearedOverlap further,
	// since what was written then may have been committed later.
	appearedReach   = 10 * time.Minute
	appearedOverlap = 5 * time.Second
	// appearedEvery is the least time between two such looks, however many events come.
	appearedEvery = 500 * time.Millisecond
	// appearedMost bounds one of them.
	appearedMost = 2000
)

// IntakeLedger is what taking events in asks of the ledger.
type IntakeLedger interface {
	Conclusions
	Appeared(ctx context.Context, since time.Time, limit int) ([]recon.OperationID, error)
}

// Inbox keeps the events.
type Inbox interface {
	Take(ctx context.Context, source recon.SourceName, now time.Time, lease time.Duration, limit int) ([]inbox.Taken, error)
	Finish(ctx context.Context, now time.Time, endings []inbox.Ending) error
}

var (
	_ IntakeLedger = (*ledger.Ledger)(nil)
	_ Inbox        = (*inbox.Store)(nil)
)

// IntakeSource is a source that decodes its provider's events.
type IntakeSource interface {
	Name() recon.SourceName
	Sheet() recon.Sheet
	sources.Receiver
}

// Intake takes stored events in: what they show becomes effects, and the operations
// that the effects name are concluded from what is stored, without asking anybody. It
// works while every provider is down. Its fields are set once; one pass at a time.
type Intake struct {
	Inbox   Inbox
	Ledger  IntakeLedger
	Sources []IntakeSource
	// Sheets are those of all sources, also of those without events: their operations
	// are concluded from stored effects too.
	Sheets map[recon.SourceName]recon.Sheet
	// Kinds are those of the effects that the actions of each source make; what an event
	// shows of other kinds is left alone, unless it may take such effects back. Nil: every
	// kind is ours.
	Kinds map[recon.SourceName][]string
	Watch IntakeWatch
	// Rest is called after each round of a pass with how many events it ended and how long
	// it took, and may hold the next one up. Nil: there is none.
	Rest func(ctx context.Context, events int, took time.Duration)
	// Changes is how many operations the events of a minute may set to failed, pending or
	// manual_review; 0: 100,000. What says more waits in the inbox.
	Changes int

	changed int       // of these, since counted
	counted time.Time // by the clock of the passes
	held    *HeldBackError
	looked  time.Time     // when Appeared was asked last, by the clock of the passes
	asked   time.Time     // and by this process's own
	every   time.Duration // what tests change
}

// IntakeWatch is told what a pass does. Every field may be nil.
type IntakeWatch struct {
	// Ended is told how the work on each event ended.
	Ended func(inbox.Ending)
	// Unmatched is told of every effect that an event showed, that an action could have
	// made and that belongs to no operation yet.
	Unmatched func(recon.Effect)
	Look      func(recon.Look)
	Judged    func(recon.Case, recon.Decision)
	// Left is told after each round of a pass which sources must be asked: where events keep
	// coming, a pass has no end.
	Left func(recon.SourceName)
}

// Intaken is what one pass did.
type Intaken struct {
	Events    int // taken
	Done      int
	Failed    int // to be tried again, or given up
	Foreign   int // of an account or mode that is none of the source's
	Concluded int // operations that changed
	// Left are sources that must be asked before more can be said: an operation was made
	// due there, or an object is to be read.
	Left map[recon.SourceName]bool
}

// Run makes one pass over the events that are due and the operations that appeared since
// the last one. Stopping between any two steps and running again ends in the same
// ledger. An event that cannot be read is counted and tried later, and stops no other.
func (i *Intake) Run(ctx context.Context, now func() time.Time) (Intaken, error) {
	out := Intaken{Left: map[recon.SourceName]bool{}}
	var faults []error
	for working := i.Sources; ; {
		began, before := time.Now(), out.Events
		var more bool
		var err error
		if working, more, err = i.round(ctx, working, now, &out); err != nil {
			faults = append(faults, err)
		}
		if !more {
			return out, errors.Join(faults...)
		}
		if i.Watch.Left != nil {
			for name := range out.Left {
				i.Watch.Left(name)
			}
		}
		if i.Rest != nil {
			i.Rest(ctx, out.Events-before, time.Since(began))
		}
	}
}

// round takes a batch of each source in, so that none waits for another's flood, and gives
// those that can be worked with: one that had no event may have some by the next round, which
// comes for as long as any has. More is false where the pass ends.
func (i *Intake) round(ctx context.Context, all []IntakeSource, now func() time.Time, out *Intaken) (working []IntakeSource, more bool, err error) {
	i.renew(now())
	var faults []error
	for _, s := range all {
		n, err := i.batch(ctx, s, now, out)
		if err != nil {
			faults = append(faults, fmt.Errorf("take in events of %s: %w", s.Name(), err))
			continue
		}
		working, more = append(working, s), more || n > 0
	}
	if err := i.appeared(ctx, now(), out); err != nil {
		more, faults = false, append(faults, err)
	}
	if i.held != nil {
		faults, i.held = append(faults, i.held), nil
	}
	return working, more, errors.Join(faults...)
}

// batch takes some events of a source and ends the work on each.
func (i *Intake) batch(ctx context.Context, s IntakeSource, now func() time.Time, out *Intaken) (int, error) {
	taken, err := i.Inbox.Take(ctx, s.Name(), now(), intakeLease, intakeBatch)
	if err != nil || len(taken) == 0 {
		return 0, err
	}
	lessons, endings := i.read(s, taken)
	ends, err := i.learn(ctx, lessons, now(), out)
	if err != nil {
		return 0, err
	}
	endings = append(endings, ends...)
	if err := i.Inbox.Finish(ctx, now(), endings); err != nil {
		return 0, err
	}
	i.count(endings, out)
	return len(taken), nil
}

func (i *Intake) count(endings []inbox.Ending, out *Intaken) {
	for _, e := range endings {
		out.Events++
		switch e.State() {
		case inbox.Done:
			out.Done++
		case inbox.Ignored:
			out.Foreign++
		default:
			out.Failed++
		}
		if i.Watch.Ended != nil {
			i.Watch.Ended(e)
		}
	}
}

// learn takes lessons into the ledger, together, and one by one where that fails, so that
// one that cannot be stored stops no other. A database that is away is nobody's fault.
func (i *Intake) learn(ctx context.Context, lessons []lesson, now time.Time, out *Intaken) ([]inbox.Ending, error) {
	refused, err := i.learnTogether(ctx, lessons, now, out)
	if err != nil && (away(err) || ctx.Err() != nil) {
		return nil, err
	}
	endings := make([]inbox.Ending, 0, len(lessons))
	for n, l := range lessons {
		fault := err
		if err != nil && len(lessons) > 1 {
			if refused, fault = i.learnTogether(ctx, lessons[n:n+1], now, out); fault != nil && away(fault) {
				return nil, fault
			}
		}
		if fault == nil {
			fault = l.lacks(refused)
		}
		endings = append(endings, inbox.Ending{Of: l.of, Err: fault, About: l.about})
	}
	return endings, nil
}

// away reports whether the database cannot be worked with now, or loses perhaps what it takes.
func away(err error) bool {
	var fault *ledger.Fault
	return errors.As(err, &fault) && (fault.Kind == ledger.FaultUnreachable || fault.Kind == ledger.FaultTimeout || fault.Kind == ledger.FaultUnconfirmed)
}

// learnTogether stores effects, asks for what was only hinted at, and concludes. It gives the
// effects that the database refuses.
func (i *Intake) learnTogether(ctx context.Context, lessons []lesson, now time.Time, out *Intaken) (refused []recon.EffectIdentity, err error) {
	t := i.teller()
	var effects []recon.Effect
	var looks []recon.Look
	for _, r := range rounds(lessons) {
		left, err := t.store(ctx, r.effects, r.raw, r.looks, now)
		if err != nil {
			return nil, err
		}
		refused = append(refused, left...)
		effects, looks = append(effects, r.effects...), append(looks, r.looks...)
	}
	if err := i.want(ctx, lessons, now, out); err != nil {
		return nil, err
	}
	ids, err := concerned(ctx, i.Ledger, named(lessons))
	if err != nil {
		return nil, err
	}
	done, err := t.conclude(ctx, ids, looks, now)
	if err != nil {
		return nil, err
	}
	i.tell(looks, effects, done, out)
	return refused, nil
}

// want asks the next sweep to read what was hinted at.
func (i *Intake) want(ctx context.Context, lessons []lesson, now time.Time, out *Intaken) error {
	var list []ledger.Reading
	var hinted []recon.Effect
	for _, l := range lessons {
		for _, h := range l.shown.Hints {
			if h.ID != "" || h.Parent != "" {
				parent := h.Parent
				if h.ID != "" {
					parent = ""
				}
				list = append(list, ledger.Reading{
					Source: l.of.Event.Source, Kind: h.Kind, Account: h.Account, Mode: h.Mode, EffectID: h.ID, Parent: parent,
					From: l.of.Event.CreatedAt.Add(-recon.ClockSkew),
				})
			}
			out.Left[l.of.Event.Source] = true
		}
		hinted = append(hinted, named([]lesson{{of: l.of, shown: sources.Shown{Hints: l.shown.Hints}}})...)
	}
	if err := i.Ledger.WantReadings(ctx, list, now); err != nil {
		return err
	}
	ids, err := concerned(ctx, i.Ledger, hinted)
	if err != nil {
		return err
	}
	return i.Ledger.CheckNow(ctx, ids, now)
}

// appeared concludes operations that came after their effects.
func (i *Intake) appeared(ctx context.Context, now time.Time, out *Intaken) error {
	if time.Since(i.asked) < i.pause() {
		return nil
	}
	since := i.looked.Add(-appearedOverlap)
	if i.looked.IsZero() {
		since = now.Add(-appearedReach)
	}
	ids, err := i.Ledger.Appeared(ctx, since, appearedMost)
	if err != nil {
		return err
	}
	t := i.teller()
	done, err := t.conclude(ctx, ids, nil, now)
	var held *HeldBackError
	if errors.As(err, &held) {
		err = i.Ledger.CheckNow(ctx, ids, now) // no event waits for them: a sweep judges them, under a limit of its own
	}
	if err != nil {
		return err
	}
	i.tell(nil, nil, done, out)
	i.looked, i.asked = now, time.Now()
	return nil
}

func (i *Intake) pause() time.Duration {
	if i.every != 0 {
		return i.every
	}
	return appearedEvery
}

func (i *Intake) teller() *teller {
	judge := &Sweep{}
	return &teller{
		ledger: i.Ledger, decided: judge.decided, judged: i.told, limit: i.limit,
		sheet: func(name recon.SourceName) (recon.Sheet, bool) { s, ok := i.Sheets[name]; return s, ok },
		hold:  func() ledger.Hold { return ledger.Hold{} },
	}
}

// tell counts what was concluded and tells the watch.
func (i *Intake) tell(looks []recon.Look, effects []recon.Effect, t concluded, out *Intaken) {
	out.Concluded += len(t.changed)
	for _, c := range t.left {
		out.Left[c.Operation.Source] = true
	}
	if i.Watch.Look != nil {
		for _, l := range looks {
			i.Watch.Look(l)
		}
	}
	if i.Watch.Unmatched != nil {
		for _, e := range effects {
			if !t.matched[e.Identity()] && i.makes(e.Source, e.Kind) {
				i.Watch.Unmatched(e)
			}
		}
	}
}
