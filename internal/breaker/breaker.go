// Package breaker breaks work off at any of its steps, in every way in which work breaks
// off, so that tests can hold it to this: done again, it ends in the same ledger.
//
// A step is a statement that is sent to the database or a request that is sent to a
// provider. A [Breaker] stands in the way of both, in the real driver and the real HTTP
// client. It serves tests only.
package breaker

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// How is a way in which a step breaks.
type How string

const (
	Refused How = "refused" // this step is not done, and all others are
	Cut     How = "cut"     // the connection ends before the step is done
	Lost    How = "lost"    // the step is done, and its answer is lost
	Stopped How = "stopped" // the work is told to stop, and may clean up
	Killed  How = "killed"  // the process dies: nothing is done any more
)

// Ways lists every way.
var Ways = []How{Refused, Cut, Lost, Stopped, Killed}

// errBroken is what a broken step ends with.
var errBroken = errors.New("broken off by the test")

// Breaker lets steps pass until one breaks. The zero value lets all pass, and counts them.
type Breaker struct {
	How How
	At  int // the step that breaks, from 1; 0: none

	mu    sync.Mutex // guards what follows
	steps []string
	dead  bool
	stop  context.CancelFunc
}

var (
	_ pgx.QueryTracer    = (*Breaker)(nil)
	_ pgx.BatchTracer    = (*Breaker)(nil)
	_ pgx.CopyFromTracer = (*Breaker)(nil)
	_ pgx.ConnectTracer  = (*Breaker)(nil)
)

// Context is what the work is to be given: it ends where the work is told to stop.
func (b *Breaker) Context(ctx context.Context) context.Context {
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx, b.stop = context.WithCancel(ctx)
	return ctx
}

// Steps names the steps so far.
func (b *Breaker) Steps() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.steps
}

// step counts a step and says how it breaks; empty: it does not.
func (b *Breaker) step(name string) How {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dead {
		return Killed
	}
	if b.steps = append(b.steps, name); len(b.steps) != b.At {
		return ""
	}
	switch b.How {
	case Killed:
		b.dead = true
	case Stopped:
		if b.stop != nil {
			b.stop()
		}
		return ""
	}
	return b.How
}

// TraceQueryStart breaks statements.
func (b *Breaker) TraceQueryStart(ctx context.Context, conn *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	return b.statement(ctx, conn, d.SQL, func(ctx context.Context) {
		_, _ = conn.Exec(ctx, d.SQL, d.Args...) // what it fails with is lost as well
	})
}

// TraceQueryEnd is part of the driver's interface.
func (b *Breaker) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart breaks batches.
func (b *Breaker) TraceBatchStart(ctx context.Context, conn *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	return b.statement(ctx, conn, "batch", func(ctx context.Context) {
		again := &pgx.Batch{}
		for _, q := range d.Batch.QueuedQueries {
			again.Queue(q.SQL, q.Arguments...)
		}
		_ = conn.SendBatch(ctx, again).Close() // what it fails with is lost as well
	})
}

// TraceBatchQuery is part of the driver's interface.
func (b *Breaker) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd is part of the driver's interface.
func (b *Breaker) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// TraceCopyFromStart breaks copies. Their rows cannot be sent twice, so that one whose
// answer is lost is one that was cut.
func (b *Breaker) TraceCopyFromStart(ctx context.Context, conn *pgx.Conn, d pgx.TraceCopyFromStartData) context.Context {
	return b.statement(ctx, conn, "copy "+d.TableName.Sanitize(), func(context.Context) {})
}

// TraceCopyFromEnd is part of the driver's interface.
func (b *Breaker) TraceCopyFromEnd(context.Context, *pgx.Conn, pgx.TraceCopyFromEndData) {}

// TraceConnectStart lets a dead process connect no more.
func (b *Breaker) TraceConnectStart(ctx context.Context, _ pgx.TraceConnectStartData) context.Context {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dead {
		return ended(ctx)
	}
	return ctx
}

// TraceConnectEnd is part of the driver's interface.
func (b *Breaker) TraceConnectEnd(context.Context, pgx.TraceConnectEndData) {}

// ours marks what the breaker itself sends.
type ours struct{}

func (b *Breaker) statement(ctx context.Context, conn *pgx.Conn, sql string, do func(context.Context)) context.Context {
	if ctx.Value(ours{}) != nil {
		return ctx
	}
	name, _, _ := strings.Cut(strings.TrimSpace(sql), "\n")
	switch b.step(name) {
	case "":
		return ctx
	case Refused:
		return ended(ctx)
	case Lost:
		do(context.WithValue(ctx, ours{}, true))
	}
	_ = conn.PgConn().Conn().Close() // as a network does, without a word
	return ctx
}

// ended is the context with its end already come.
func ended(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	cancel(errBroken)
	return ctx
}

// Proxy is a server that passes requests on to another, and breaks them: for clients that
// are given an address and no transport.
func (b *Breaker) Proxy(t testing.TB, to string) string {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:    b.Transport(http.DefaultTransport),
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // no answer at all
		ErrorLog:     log.New(io.Discard, "", 0),
	})
	t.Cleanup(server.Close)
	return server.URL
}

// Transport breaks requests.
func (b *Breaker) Transport(inner http.RoundTripper) http.RoundTripper { return transport{b, inner} }

type transport struct {
	*Breaker
	inner http.RoundTripper
}

func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	switch t.step(req.Method + " " + req.URL.Path) {
	case "":
		return t.inner.RoundTrip(req)
	case Lost:
		resp, err := t.inner.RoundTrip(req)
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	}
	if req.Body != nil {
		_ = req.Body.Close() // as the contract of a transport asks
	}
	return nil, errBroken
}
