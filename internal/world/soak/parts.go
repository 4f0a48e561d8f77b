package main

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// partOfSoak is the environment variable that a part is started with. Tests know it by that.
const partOfSoak = "RECONCILER_SOAK_PART"

// apart lives through the worlds in several processes, one on each processor, which has a
// server of its own there. A world and its database talk in turn, thousands of times: side by
// side on one processor neither wakes another one up for every word, which saves a quarter.
func apart(ctx context.Context, o options, out, progress io.Writer) (sum result, err error) {
	dir, err := os.MkdirTemp("", "reconciler-soak-")
	if err != nil {
		return sum, err
	}
	defer os.RemoveAll(dir)
	n := min(o.processes, o.seeds)
	out, progress = &shared{to: out}, &shared{to: progress}
	found := make([]result, n)
	var group errgroup.Group // one that fails does not stop the others: they tell what they found
	for k := range n {
		group.Go(func() (err error) {
			found[k], err = o.part(ctx, part{k, n, filepath.Join(dir, strconv.Itoa(k))}, out, progress)
			return err
		})
	}
	err = group.Wait()
	for _, f := range found {
		sum.add(f)
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return sum, err
}

// shared is written to by several parts at once.
type shared struct {
	mu sync.Mutex
	to io.Writer
}

// Write implements [io.Writer].
func (s *shared) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.to.Write(text)
}

// part is the k-th of n parts of the worlds, and where it writes what they came to.
type part struct {
	k, n int
	sum  string
}

// part lives through the worlds of one part in another process.
func (o options) part(ctx context.Context, p part, out, progress io.Writer) (result, error) {
	program, err := os.Executable()
	if err != nil {
		return result{}, err
	}
	c := exec.CommandContext(ctx, program, "-seeds", strconv.Itoa((o.seeds-p.k+p.n-1)/p.n), "-operations", strconv.Itoa(o.operations),
		"-first", strconv.FormatUint(o.first+uint64(p.k)*o.step, 10), "-step", strconv.FormatUint(uint64(p.n)*o.step, 10),
		"-intents", o.intents, "-troubles", o.troubles, "-shrink="+strconv.FormatBool(o.shrink), "-sum", p.sum)
	c.Env = append(os.Environ(), partOfSoak+"=1")
	c.Stdout, c.Stderr = out, progress
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) } // it writes what was done by then
	c.WaitDelay = time.Minute
	if err := startOn(c, p.k); err != nil {
		return result{}, err
	}
	ended := c.Wait()
	sum, err := load(p.sum)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // it said why
	}
	if ended != nil {
		err = errors.Join(err, fmt.Errorf("part %d of %d: %w", p.k+1, p.n, ended))
	}
	return sum, err
}

// save writes what worlds came to.
func save(file string, sum result) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(gob.NewEncoder(f).Encode(sum), f.Close())
}

// load reads what worlds came to.
func load(file string) (sum result, err error) {
	f, err := os.Open(file)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	return sum, gob.NewDecoder(f).Decode(&sum)
}
