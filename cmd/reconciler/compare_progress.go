package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// readingEvery is how often progress is shown; what is done sooner shows none.
const readingEvery = 500 * time.Millisecond

// reading shows on a terminal how much of some files was read. Elsewhere it shows
// nothing: logs and pipes are read by programs.
type reading struct {
	what  string
	then  string // what is done once all was read
	total int64
	read  atomic.Int64
	stop  chan struct{}
	done  sync.WaitGroup
}

func (a *app) reading(what, then string, inputs ...*os.File) *reading {
	p := &reading{what: what, then: then, stop: make(chan struct{})}
	out, ok := a.err.(*os.File)
	if !ok || !isScreen(out) {
		return p
	}
	for _, f := range inputs {
		if info, err := f.Stat(); err == nil {
			p.total += info.Size()
		}
	}
	p.done.Add(1)
	go p.show(out)
	return p
}

func isScreen(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (p *reading) show(out io.Writer) {
	defer p.done.Done()
	tick := time.NewTicker(readingEvery)
	defer tick.Stop()
	shown := false
	for {
		select {
		case <-tick.C:
			shown = true
			fmt.Fprintf(out, "\r\x1b[K%s", p.text())
		case <-p.stop:
			if shown {
				fmt.Fprint(out, "\r\x1b[K")
			}
			return
		}
	}
}

// text says how far the reading is. When all is read the work goes on for a while.
func (p *reading) text() string {
	read := p.read.Load()
	switch {
	case p.total <= 0:
		return fmt.Sprintf("%s: %d MB", p.what, read>>20)
	case read >= p.total:
		return p.then
	}
	return fmt.Sprintf("%s: %d of %d MB (%d %%)", p.what, read>>20, p.total>>20, read*100/p.total)
}

func (p *reading) reader(r io.Reader) io.Reader { return &counted{r, &p.read} }

// end takes the progress off the screen.
func (p *reading) end() {
	close(p.stop)
	p.done.Wait()
}

// counted counts what is read. It can be rewound where its reader can; what is read again
// is past the total.
type counted struct {
	io.Reader
	n *atomic.Int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n.Add(int64(n))
	return n, err
}

func (c *counted) Seek(offset int64, whence int) (int64, error) {
	if s, ok := c.Reader.(io.Seeker); ok {
		return s.Seek(offset, whence)
	}
	return 0, errors.ErrUnsupported
}

// Stat is that of its reader, where it has one.
func (c *counted) Stat() (fs.FileInfo, error) {
	if f, ok := c.Reader.(fs.File); ok {
		return f.Stat()
	}
	return nil, errors.ErrUnsupported
}
