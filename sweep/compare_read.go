package sweep

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

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
	setAside   int
	places     identities // of effects
	notes      []string
	facts      compareFacts
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
	if operations, effects, ok := rewindables(o); ok {
		return sieveBoth(ctx, o, operations, effects)
	}
	return readWhole(ctx, o)
}

// readWhole keeps all of both files.
func readWhole(ctx context.Context, o CompareOptions) (compareInput, error) {
	var in compareInput
	var told []string
	g, ctx := errgroup.WithContext(ctx)
	known := make(chan struct{}) // closed once the operations are read
	g.Go(func() (err error) {
		defer close(known)
		in.operations, told, err = readOperations(ctx, o)
		return err
	})
	g.Go(func() error { return in.readEffects(ctx, o, onlyAccounts(o.Policies), known) })
	if err := g.Wait(); err != nil {
		return in, err
	}
	in.notes = append(told, in.notes...)
	in.facts = factsOf(in, o.EffectsFormat)
	return in, nil
}

// readEffects reads the effects, once each.
func (in *compareInput) readEffects(ctx context.Context, o CompareOptions, only func(recon.SourceName) recon.Account, operations <-chan struct{}) error {
	var read records[recon.Effect]
	if o.EffectsFormat == nil {
		if err := readEffectLines(ctx, o, only, &read); err != nil {
			return err
		}
		return in.foldLines(o, read)
	}
	if err := in.readRows(ctx, o, func(line int, e *recon.Effect) { read.add(*e, line) }, nil); err != nil {
		return err
	}
	<-operations // what rows do not say is what the operations name
	whose, err := tableOwnerOf(o, placesOf(in.operations))
	if err != nil {
		return err
	}
	for _, e := range read.all {
		whose.complete(e)
	}
	in.leaveOut(o, &read)
	return in.foldLines(o, read)
}

func readEffectLines(ctx context.Context, o CompareOptions, only func(recon.SourceName) recon.Account, read *records[recon.Effect]) error {
	name, systems := fileName(o.EffectsName, "effects"), systemsOf(o.Policies)
	return eachLine(ctx, o.Effects, name, func(n int, line []byte) error {
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
}

// foldLines makes one effect of all lines that tell of the same.
func (in *compareInput) foldLines(o CompareOptions, read records[recon.Effect]) error {
	name := fileName(o.EffectsName, "effects")
	in.places = newIdentities(len(read.all))
	kept := read.all[:0]
	again := map[int32][]told{} // by place in kept, of effects that several lines tell of
	for i, e := range read.all {
		key := in.places.key(e.Identity())
		at, known := in.places.at[key]
		if !known {
			in.places.at[key] = int32(len(kept))
			read.lines[len(kept)] = read.lines[i]
			kept = append(kept, e)
			continue
		}
		if again[at] == nil {
			again[at] = []told{{kept[at], read.lines[at]}}
		}
		again[at] = append(again[at], told{e, read.lines[i]})
		in.repeated++
	}
	for _, at := range slices.Sorted(maps.Keys(again)) {
		if err := agree(name, again[at]); err != nil {
			return err
		}
		kept[at] = mergeLines(again[at])
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
				if errors.Is(err, io.EOF) {
					return fmt.Errorf("%s line %d: %w; it is the last line and has no end, so the file may be cut off", name, n, fault)
				}
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
