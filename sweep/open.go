package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Run makes one pass over the open operations of the source that are due. Each step
// hands its whole result to the next. Stopping between any two steps and running
// again ends in the same ledger. An error that comes with an outcome says how far the
// run got. *ledger.RunningError and *ledger.HeldError say that another run holds the
// place, *ledger.TickError that the tick is done.
func (s *Sweep) Run(ctx context.Context, o Options) (Outcome, error) {
	return s.run(ctx, o, "sweep", ledger.OpenOperations)
}

// run is the whole control flow of a pass.
func (s *Sweep) run(ctx context.Context, o Options, name string, ladder ledger.Ladder) (Outcome, error) {
	p, err := s.begin(ctx, o, name, ladder)
	if err != nil {
		return Outcome{}, err
	}
	return p.end(ctx, p.loop(p.alive))
}

// loop goes on until nothing is due.
func (p *pass) loop(ctx context.Context) error {
	if err := p.expire(ctx); err != nil {
		return err
	}
	if err := p.probe(ctx); err != nil { // a source that is down is asked whether it is back
		return err
	}
	if err := p.read(ctx); err != nil { // what events told of and did not show
		return err
	}
	for {
		cases, err := p.due(ctx) // what we believe, with all that is stored about it
		if err != nil {
			return err
		}
		if len(cases) == 0 {
			return p.shelve(ctx) // what was seen and belongs to none of them
		}
		heard, err := p.ask(ctx, cases) // what the source says of the rest, or that it did not
		if err != nil {
			return err
		}
		judged := p.judge(heard) // paired and decided, pure
		if err := p.limit(judged); err != nil {
			return err // refuse, and say so
		}
		if err := p.record(ctx, heard, judged); err != nil { // one transaction
			return err
		}
	}
}

// pass is one run while it goes on.
type pass struct {
	*Sweep
	options Options
	ladder  ledger.Ladder
	begun   time.Time // by options.Now: what was due then is this run's work
	started time.Time // for the duration
	run     ledger.Run
	state   ledger.SourceState
	told    ledger.SourceState // state as the ledger has it
	fault   string             // why the source was blind last: a kind of fault
	detail  string             // and what happened, for people
	out     Outcome
	whole   any // what the run's row keeps instead of out; nil: out
	changed int
	drained bool                       // all that was due when the run began was read
	past    map[recon.OperationID]bool // taken and possibly still due: not again in this run
	lists   []recon.Look               // complete lists of this run, which answer for later batches
	covered []recon.Coverage           // what they answer for, until everything that they showed is recorded
	deaf    map[string]bool            // witnesses that could not be asked
	shelf   *shelf                     // what they showed and no batch took yet

	alive context.Context // ends when the hold or the run's place is lost
	stop  context.CancelCauseFunc
	beats sync.WaitGroup

	mu   sync.Mutex // guards hold, which the heartbeat renews
	hold ledger.Hold
}

// begin takes the run's place and the source.
func (s *Sweep) begin(ctx context.Context, o Options, name string, ladder ledger.Ladder) (*pass, error) {
	p, err := s.place(ctx, o, name, ladder)
	if err != nil {
		return nil, err
	}
	if p.hold, err = s.takeSource(ctx); err == nil {
		p.state, err = s.Ledger.SourceState(ctx, s.Source.Name())
	}
	p.told = p.state
	if err != nil {
		_, err = p.end(ctx, err)
		return nil, err
	}
	p.beats.Go(p.beat)
	return p, nil
}

// place takes the run's place alone.
func (s *Sweep) place(ctx context.Context, o Options, name string, ladder ledger.Ladder) (*pass, error) {
	p := &pass{
		Sweep: s, options: o, ladder: ladder, begun: o.Now(), started: time.Now(),
		past: map[recon.OperationID]bool{}, deaf: map[string]bool{}, shelf: newShelf(),
		out: Outcome{Source: s.Source.Name(), Findings: map[recon.FindingKind]int{}},
	}
	var err error
	p.run, err = s.Ledger.BeginRun(ctx, ledger.RunStart{
		Name: name + "/" + string(s.Source.Name()), Tick: o.Tick, Holder: s.Holder, TTL: holdFor,
	})
	if err != nil {
		return nil, err
	}
	p.out.RunID = p.run.ID
	p.alive, p.stop = context.WithCancelCause(ctx)
	return p, nil
}

// takeSource takes the source, and waits a little for another kind of run to give it
// back: a re-verification that meets a sweep at the full hour would lose its day.
func (s *Sweep) takeSource(ctx context.Context) (ledger.Hold, error) {
	for began := time.Now(); ; {
		hold, err := s.Ledger.HoldSource(ctx, s.Source.Name(), s.Holder, holdFor)
		var held *ledger.HeldError
		if !errors.As(err, &held) || time.Since(began) >= s.patience() {
			return hold, err
		}
		select {
		case <-ctx.Done():
			return hold, ctx.Err()
		case <-time.After(askAgain):
		}
	}
}

func (s *Sweep) patience() time.Duration {
	if s.wait > 0 {
		return s.wait
	}
	return holdFor / 2 // the run's own place must not be taken for dead meanwhile
}

// beat renews the hold and the run's place until the pass ends.
func (p *pass) beat() {
	tick := time.NewTicker(holdFor / 3)
	defer tick.Stop()
	for {
		select {
		case <-p.alive.Done():
			return
		case <-tick.C:
		}
		err := p.renew()
		if err == nil {
			_, err = p.Ledger.HeartbeatRun(p.alive, p.run, holdFor)
		}
		var stale *ledger.StaleHoldError
		var abandoned *ledger.AbandonedError
		if errors.As(err, &stale) || errors.As(err, &abandoned) {
			p.stop(err)
			return
		}
		if err != nil && p.alive.Err() == nil { // the next beat tries again; Record refuses if it was too late
			p.log().WarnContext(p.alive, "could not renew the hold", "source", p.out.Source, "error", err)
		}
	}
}

// renew prolongs the hold, if the run has the source now.
func (p *pass) renew() error {
	had := p.held()
	if had.Token == 0 {
		return nil
	}
	hold, err := p.Ledger.RenewSource(p.alive, had, holdFor)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hold.Token != had.Token {
		return nil // given back meanwhile
	}
	if err == nil {
		p.hold = hold
	}
	return err
}

func (p *pass) held() ledger.Hold {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hold
}

// end gives everything back and closes the run's row. It must be done also when the
// process was told to stop, so it does not take the context's end.
func (p *pass) end(ctx context.Context, failure error) (Outcome, error) {
	if cause := context.Cause(p.alive); cause != nil && failure != nil {
		failure = cause
	}
	p.stop(nil)
	p.beats.Wait()
	stopped := errors.Is(ctx.Err(), context.Canceled)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer cancel()
	p.out.DurationMS, p.out.BlindReason = time.Since(p.started).Milliseconds(), p.blindReason()
	end := ledger.RunEnd{Outcome: ledger.RunDone}
	if failure != nil {
		end.Outcome, end.Error = ledger.RunFailed, failure.Error()
		if stopped { // no fault of the run's: whoever comes next does its tick
			end.Outcome = ledger.RunAbandoned
		}
	}
	var document any = p.out
	if p.whole != nil {
		document = p.whole
	}
	counts, err := json.Marshal(document)
	if err != nil {
		return p.out, errors.Join(failure, fmt.Errorf("write the counts of the run: %w", err))
	}
	end.Counts = counts
	if p.hold.Token != 0 {
		err = p.Ledger.ReleaseSource(ctx, p.held())
	}
	return p.out, errors.Join(failure, err, p.Ledger.FinishRun(ctx, p.run, end))
}

// expire sets operations whose lease is over to unknown, so that they are judged.
func (p *pass) expire(ctx context.Context) error {
	if p.ladder != ledger.OpenOperations {
		return nil
	}
	for {
		n, err := p.Ledger.ExpireLeases(ctx, p.out.Source, p.options.Now(), p.batchSize())
		if err != nil {
			return fmt.Errorf("end leases that are over: %w", err)
		}
		if n < p.batchSize() {
			return p.step("expire")
		}
	}
}

// due reads the next operations. What was due when the run began is its work, each
// operation once: one that another writer was faster on waits for the next run.
func (p *pass) due(ctx context.Context) ([]recon.Case, error) {
	limit := p.batchSize()
	if p.options.Limit > 0 {
		limit = min(limit, p.options.Limit-p.out.Claimed)
	}
	if limit <= 0 || p.drained {
		return nil, nil
	}
	cases, err := p.Ledger.Due(ctx, ledger.Scope{Source: p.out.Source, Ladder: p.ladder}, p.begun, limit)
	if err != nil {
		return nil, fmt.Errorf("read what is due: %w", err)
	}
	p.drained = len(cases) < limit
	fresh := cases[:0]
	for _, c := range cases {
		if !p.past[c.Operation.ID] {
			c.Sheet = p.Source.Sheet()
			fresh = append(fresh, c)
		}
	}
	return fresh, p.step("due")
}

func (s *Sweep) batchSize() int {
	if s.batch > 0 {
		return s.batch
	}
	return defaultBatch
}

// limit refuses a batch that would pass what one run may change.
func (p *pass) limit(v verdicts) error {
	next, limit := v.capped(), changesOf(p.Changes)
	if next > 0 && p.changed+next > limit {
		return &LimitError{Source: p.out.Source, Limit: limit, Changed: p.changed, Next: next}
	}
	return nil
}

// changesOf is the limit of one run, as it was set or by the contract.
func changesOf(set int) int {
	if set == 0 {
		return defaultChanges
	}
	return set
}

// capped counts the decisions that count against the limit.
func (v verdicts) capped() int {
	n := 0
	for _, j := range v.judged {
		if capped(j.Decision) {
			n++
		}
	}
	return n
}

// capped reports whether a decision counts against the limit. Successes rest on
// proof and do not.
func capped(d recon.Decision) bool {
	if d.From == d.To {
		return d.Release
	}
	return d.To == recon.Failed || d.To == recon.ManualReview || d.Release
}

// step tells a test that a step is done, and lets it end the run there.
func (p *pass) step(name string) error {
	if p.after == nil {
		return nil
	}
	return p.after(name)
}

func (p *pass) log() *slog.Logger {
	if p.Log != nil {
		return p.Log
	}
	return slog.Default()
}
