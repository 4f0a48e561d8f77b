package sweep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-1c4f4dc2/reconciler/matchers"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// errChanged says that a file is no longer what it was a moment ago.
var errChanged = errors.New("it changed while it was read; compare a copy that nobody writes")

// rewindable is a file that can be read again.
type rewindable struct {
	io.Seeker
	name    string
	size    int64
	written time.Time // when it was last written to; zero where nobody knows
}

// rewindables gives both files, and false where one is a pipe.
func rewindables(o CompareOptions) (operations, effects rewindable, ok bool) {
	operations, a := rewindableOf(o.Operations, fileName(o.OperationsName, "operations"))
	effects, b := rewindableOf(o.Effects, fileName(o.EffectsName, "effects"))
	return operations, effects, a && b
}

func rewindableOf(r io.Reader, name string) (rewindable, bool) {
	f := rewindable{name: name}
	var ok bool
	if f.Seeker, ok = r.(io.Seeker); !ok {
		return f, false
	}
	if at, err := f.Seek(0, io.SeekCurrent); err != nil || at != 0 {
		return f, false
	}
	var err error
	if f.size, err = f.Seek(0, io.SeekEnd); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	f.written = f.lastWritten()
	return f, err == nil
}

// lastWritten tells when a file was last written to, if it is one of a disk.
func (f rewindable) lastWritten() time.Time {
	file, ok := f.Seeker.(interface{ Stat() (fs.FileInfo, error) })
	if !ok {
		return time.Time{}
	}
	info, err := file.Stat()
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// rewind goes back to the start. A file that has another size than before, or was written to,
// was changed.
func (f rewindable) rewind() error {
	size, err := f.Seek(0, io.SeekEnd)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", f.name, err)
	case size != f.size || !f.lastWritten().Equal(f.written):
		return fmt.Errorf("%s: %w", f.name, errChanged)
	}
	_, err = f.Seek(0, io.SeekStart)
	return err
}

// readAgain reads both files from their start and keeps all of them.
func readAgain(ctx context.Context, o CompareOptions, operations, effects rewindable) (compareInput, error) {
	if err := errors.Join(operations.rewind(), effects.rewind()); err != nil {
		return compareInput{}, err
	}
	return readWhole(ctx, o)
}

// rereading finds rows that are wanted in a file that is read again. It is asked for lines
// in their order.
type rereading[T comparable] struct {
	rows    *rowsOf[T]
	line    func(*T) int32
	wanted  func(i int32, row *T) bool
	next    int32 // the first row that is not passed yet
	missing int   // how many wanted rows were not met yet
}

func reread[T comparable](rows *rowsOf[T], line func(*T) int32, wanted func(int32, *T) bool) *rereading[T] {
	r := &rereading[T]{rows: rows, line: line, wanted: wanted}
	for i := range int32(rows.n) {
		if wanted(i, rows.at(i)) {
			r.missing++
		}
	}
	return r
}

// at gives the row that is wanted on a line, or nil.
func (r *rereading[T]) at(line int) *T {
	if r.from(line) != line {
		return nil
	}
	return r.rows.at(r.next)
}

// from gives the first line from one on, on which a row stands that is wanted.
func (r *rereading[T]) from(line int) int {
	for ; int(r.next) < r.rows.n; r.next++ {
		row := r.rows.at(r.next)
		if at := int(r.line(row)); at >= line && r.wanted(r.next, row) {
			return at
		}
	}
	return math.MaxInt
}

// end tells whether every row was met, and says what it said before.
func (r *rereading[T]) end(name string, err error) error {
	if err == nil && r.missing != 0 {
		return fmt.Errorf("%s: %w", name, errChanged)
	}
	return err
}

// secondPass reads again what must be compared in full.
func (s *sieve) secondPass(ctx context.Context, in *compareInput) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.operationsAgain(ctx, in) })
	g.Go(func() error { return s.effectsAgain(ctx, in) })
	return g.Wait()
}

func (s *sieve) operationsAgain(ctx context.Context, in *compareInput) error {
	name := fileName(s.o.OperationsName, "operations")
	rows := reread(&s.operations, func(o *operationRow) int32 { return o.line }, func(i int32, _ *operationRow) bool { return s.operations.exact[i] })
	var read records[recon.Operation]
	_, err := eachOperation(ctx, s.o, func(line int, op *recon.Operation) {
		if was := rows.at(line); was != nil {
			if is := s.ours.operation(op, line); is == *was {
				rows.missing--
			}
			read.add(*op, line)
		}
	}, rows.from)
	if err := rows.end(name, err); err != nil {
		return err
	}
	in.operations, err = checkOperations(name, read)
	return err
}

func (s *sieve) effectsAgain(ctx context.Context, in *compareInput) error {
	read, err := s.reread(ctx, func(i int32, _ *effectRow) bool { return s.effects.exact[i] })
	if err != nil {
		return err
	}
	return in.foldLines(s.o, read)
}

// reread reads the effects that are wanted in full.
func (s *sieve) reread(ctx context.Context, wanted func(int32, *effectRow) bool) (records[recon.Effect], error) {
	rows := reread(&s.effects, func(e *effectRow) int32 { return e.line }, wanted)
	var read records[recon.Effect]
	_, err := s.eachEffect(ctx, func(line int, e *recon.Effect) {
		if was := rows.at(line); was != nil {
			if is := s.theirs.effect(e, line); is == *was {
				rows.missing--
			}
			read.add(*e, line)
		}
	}, rows.from)
	return read, rows.end(fileName(s.o.EffectsName, "effects"), err)
}

// lookalikes keeps the operations that an effect without owner may look like. Only those
// effects are read for it.
func (s *sieve) lookalikes(ctx context.Context, effects rewindable) error {
	loose := func(i int32, e *effectRow) bool { return s.owner[i] < 0 && e.reference != 0 }
	some := false
	for i := range int32(s.effects.n) {
		some = some || loose(i, s.effects.at(i))
	}
	if !some {
		return nil
	}
	if err := effects.rewind(); err != nil {
		return err
	}
	read, err := s.reread(ctx, loose)
	if err != nil {
		return err
	}
	alike := map[uint64]bool{}
	for _, e := range read.all {
		for _, r := range matchers.Readings(e.Reference) {
			alike[s.ours.text(r)] = true
		}
	}
	for i := range int32(s.operations.n) {
		if alike[s.operations.at(i).folded] {
			s.operations.exact[i] = true
		}
	}
	return nil
}
