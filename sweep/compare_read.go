package sweep

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// maxLine bounds one line: metadata of 64 KiB with every character escaped, and room.
const maxLine = 1 << 20

// compareInput is what both files hold.
type compareInput struct {
	operations []*recon.Operation
	effects    []*recon.Effect // one each, however many lines tell of it
	repeated   int
	places     identities // of effects
}

// identities finds effects by identity. The place, of which there are few, is kept as
// a number: hashing four texts a line is a good part of reading it.
type identities struct {
	places map[recon.EffectIdentity]int32 // identity without id
	last   recon.EffectIdentity           // the place asked for last, and its number
	number int32
	at     map[placedID]int32
}

type placedID struct {
	place int32
	id    string
}

func newIdentities(n int) identities {
	return identities{places: map[recon.EffectIdentity]int32{}, number: -1, at: make(map[placedID]int32, n)}
}

func (x *identities) key(id recon.EffectIdentity) placedID {
	name := id.ID
	id.ID = ""
	if x.number < 0 || id != x.last {
		n, known := x.places[id]
		if !known {
			n = int32(len(x.places))
			x.places[id] = n
		}
		x.last, x.number = id, n
	}
	return placedID{x.number, name}
}

// records holds what was read from a file, each with its line. Large values stay where
// they were put: growing one slice of them would copy each several times.
type records[T any] struct {
	all   []*T
	lines []int32
	chunk []T
}

const chunkSize = 1024

func (r *records[T]) add(v T, line int) {
	if len(r.chunk) == cap(r.chunk) {
		r.chunk = make([]T, 0, chunkSize)
	}
	r.chunk = append(r.chunk, v)
	r.all = append(r.all, &r.chunk[len(r.chunk)-1])
	r.lines = append(r.lines, int32(line))
}

// readBoth reads both files at the same time: decoding is most of the work.
func readBoth(ctx context.Context, o CompareOptions) (compareInput, error) {
	var in compareInput
	only := onlyAccounts(o.Policies)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		in.operations, err = readOperations(ctx, o, only)
		return err
	})
	g.Go(func() error { return in.readEffects(ctx, o, only) })
	return in, g.Wait()
}

func readOperations(ctx context.Context, o CompareOptions, only func(recon.SourceName) recon.Account) ([]*recon.Operation, error) {
	name := fileName(o.OperationsName, "operations")
	var read records[recon.Operation]
	err := eachLine(ctx, o.Operations, name, func(n int, line []byte) error {
		op, err := recon.ParseOperationIn(line, only)
		if err != nil {
			return err
		}
		op.Metadata = nil // takes no part in a comparison
		read.add(op, n)
		return nil
	})
	if err != nil {
		return nil, err
	}
	first := make(map[recon.OperationID]int32, len(read.all))
	for i, op := range read.all {
		if line, again := first[op.ID]; again {
			return nil, fmt.Errorf("%s line %d: operation %s stands on line %d already; every operation has one line, so remove one of them", name, read.lines[i], op.ID, line)
		}
		first[op.ID] = read.lines[i]
	}
	return read.all, nil
}

// readEffects reads the effects and makes one of all lines that tell of the same.
func (in *compareInput) readEffects(ctx context.Context, o CompareOptions, only func(recon.SourceName) recon.Account) error {
	name, systems := fileName(o.EffectsName, "effects"), systemsOf(o.Policies)
	var read records[recon.Effect]
	err := eachLine(ctx, o.Effects, name, func(n int, line []byte) error {
		e, err := recon.ParseEffectIn(line, only)
		if err != nil {
			return err
		}
		e.Metadata = nil // takes no part in a comparison
		if s, ok := systems[e.Source]; ok {
			e.System = s
		}
		read.add(e, n)
		return nil
	})
	if err != nil {
		return err
	}
	in.places = newIdentities(len(read.all))
	kept := read.all[:0]
	for i, e := range read.all {
		key := in.places.key(e.Identity())
		at, again := in.places.at[key]
		if !again {
			in.places.at[key] = int32(len(kept))
			read.lines[len(kept)] = read.lines[i]
			kept = append(kept, e)
			continue
		}
		in.repeated++
		merged, field := mergeLines(*kept[at], *e)
		if field != "" {
			return fmt.Errorf("%s line %d: effect %s stands on line %d already, with the same status and another %s; remove the wrong line", name, read.lines[i], e.ID, read.lines[at], field)
		}
		*kept[at] = merged
	}
	in.effects = kept
	return nil
}

func fileName(name, otherwise string) string {
	if name == "" {
		return otherwise
	}
	return name
}

// systemsOf gives the systems of configured sources.
func systemsOf(policies map[string]recon.Policy) map[recon.SourceName]string {
	systems := map[recon.SourceName]string{}
	for _, p := range policies {
		if p.System != "" {
			systems[p.Source] = p.System
		}
	}
	return systems
}

// onlyAccounts gives the account and mode that stand where a line has none: the only
// one of a configured source, default where it has none or is not configured, and
// nothing where it has several.
func onlyAccounts(policies map[string]recon.Policy) func(recon.SourceName) recon.Account {
	only := map[recon.SourceName]recon.Account{}
	for _, p := range policies {
		switch len(p.Accounts) {
		case 0:
			only[p.Source] = recon.Account{Account: "default"}
		case 1:
			only[p.Source] = p.Accounts[0]
		default:
			only[p.Source] = recon.Account{}
		}
	}
	return func(s recon.SourceName) recon.Account {
		if a, ok := only[s]; ok {
			return a
		}
		return recon.Account{Account: "default"}
	}
}

// eachLine calls take for every line that is not blank, with its number, and names
// file and line in its errors. A byte order mark is no part of the first line.
func eachLine(ctx context.Context, r io.Reader, name string, take func(int, []byte) error) error {
	in := bufio.NewReaderSize(r, 256<<10)
	var long []byte
	for n := 1; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			line, err = rest(in, append(long[:0], line...))
			long = line
		}
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		if line = bytes.TrimSpace(line); len(line) > 0 && (err == nil || errors.Is(err, io.EOF)) {
			if fault := take(n, line); fault != nil {
				return fmt.Errorf("%s line %d: %w", name, n, fault)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s line %d: %w", name, n, err)
		}
	}
}

// rest reads on to the end of a line that is longer than the buffer.
func rest(in *bufio.Reader, line []byte) ([]byte, error) {
	for {
		more, err := in.ReadSlice('\n')
		if line = append(line, more...); len(line) > maxLine {
			return nil, fmt.Errorf("it has over %d bytes; is the file JSON Lines, with one object a line?", maxLine)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// mergeLines joins two lines of one effect, or names the field in which they
// contradict each other. The furthest status wins; what only one line shows is kept.
func mergeLines(a, b recon.Effect) (recon.Effect, string) {
	if furthest(b.Status, a.Status) {
		a, b = b, a
	}
	if a.Status == b.Status {
		switch {
		case !a.Money.IsZero() && !b.Money.IsZero() && a.Money.Minor != b.Money.Minor:
			return a, "amount"
		case a.Money.Currency != "" && b.Money.Currency != "" && a.Money.Currency != b.Money.Currency:
			return a, "currency"
		case a.Reference != "" && b.Reference != "" && a.Reference != b.Reference:
			return a, "reference"
		}
	}
	if a.Money.IsZero() {
		a.Money = b.Money
	}
	fill := func(to *string, from string) {
		if *to == "" {
			*to = from
		}
	}
	fill(&a.Reference, b.Reference)
	fill(&a.NaturalReference, b.NaturalReference)
	fill(&a.Key, b.Key)
	fill(&a.Parent, b.Parent)
	fill(&a.Target, b.Target)
	fill(&a.CausedBy, b.CausedBy)
	fill(&a.CreatedBy, b.CreatedBy)
	fill(&a.FailureReason, b.FailureReason)
	if len(a.OtherParents) == 0 {
		a.OtherParents = b.OtherParents
	}
	if b.CreatedAt.Before(a.CreatedAt) {
		a.CreatedAt = b.CreatedAt
	}
	return a, ""
}

// furthest reports whether status a is further in an effect's life than b. Of failed
// and reversed, reversed says more: it happened before it was undone.
func furthest(a, b recon.EffectStatus) bool {
	if a.Rank() != b.Rank() {
		return a.Rank() > b.Rank()
	}
	return a == recon.Reversed && b == recon.EffectFailed
}
