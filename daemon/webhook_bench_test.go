package daemon

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-1c4f4dc2/reconciler/internal/localpg"
	"github.com/seed-1c4f4dc2/reconciler/internal/turns"
	"github.com/seed-1c4f4dc2/reconciler/migrations"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// durableURL is a server that writes to its disk as a real one does, with the schema.
func durableURL(b *testing.B) string {
	b.Helper()
	dir, err := os.MkdirTemp(localpg.ReachableTemp(), "bench")
	if err != nil {
		b.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	server, err := localpg.Start(b.Context(), localpg.Options{Dir: filepath.Join(dir, "data")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := server.Stop(context.WithoutCancel(b.Context())); err != nil {
			b.Error(err)
		}
	})
	url := server.URL("postgres")
	if err := migrations.Up(b.Context(), url); err != nil {
		b.Fatal(err)
	}
	return url
}

// One row of the same table, by a program in C that does nothing else.
const pgbenchScript = `
\set n random(1, 1000000000000)
INSERT INTO reconciler.events (tenant, system, account, mode, id, source, type, signed, created_at, received_at, last_received_at, deliveries, state, next_try, body_hash)
VALUES ('default', 'stripe', 'acct_1', 'live', 'evt_' || (:n)::bigint, 'pgbench', 'refund.created', true, now(), now(), now(), 1, 'new', now(), sha256('x')) ON CONFLICT DO NOTHING;
`

// The same row with its body, which a delivery is acknowledged with.
const pgbenchWhole = `
\set n random(1, 1000000000000)
WITH kept AS (INSERT INTO reconciler.blobs (tenant, id, salt, bytes) VALUES ('default', 'pgbench-' || (:n)::bigint, sha256('x'), convert_to(repeat('x', 600), 'UTF8')))
INSERT INTO reconciler.events (tenant, system, account, mode, id, source, type, signed, created_at, received_at, last_received_at, deliveries, state, next_try, blob_id, body_hash)
VALUES ('default', 'stripe', 'acct_1', 'live', 'evt_' || (:n)::bigint, 'pgbench', 'refund.created', true, now(), now(), now(), 1, 'new', now(), 'pgbench-' || (:n)::bigint, sha256('x'));
`

var pgbenchRate = regexp.MustCompile(`tps = ([0-9.]+)`)

// insertsPerSecond is what the server takes of single rows from 16 clients.
func insertsPerSecond(b *testing.B, url, statement string) float64 {
	b.Helper()
	script := filepath.Join(b.TempDir(), "insert.sql")
	if err := os.WriteFile(script, []byte(statement), 0o644); err != nil {
		b.Fatal(err)
	}
	out, err := exec.CommandContext(b.Context(), "pgbench", "-n", "-M", "prepared", "-c", "16", "-j", "2", "-T", "3", "-f", script, url).CombinedOutput()
	found := pgbenchRate.FindSubmatch(out)
	if err != nil || found == nil {
		b.Fatalf("pgbench: %v\n%s", err, out)
	}
	tps, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		b.Fatal(err)
	}
	return tps
}

// BenchmarkWebhooks holds 16 clients that deliver over HTTP against pgbench's 16 that
// insert one row each into the same table, on the same machine and disk. Rounds take
// turns, and none begins before all that the one before delivered was taken in. The ratio
// is the median, and 0.5 is the budget; ratio-whole is that to rows with their bodies, and
// taken-in/s how fast the rest was taken in once nothing was delivered any more.
func BenchmarkWebhooks(b *testing.B) {
	url := durableURL(b)
	p := startProcess(b, url)
	defer p.kill(b)
	db, err := pgxpool.New(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	var bare, whole, inserts, deliveries, taken []float64
	for round := 0; b.Loop(); round++ {
		inserts = append(inserts, insertsPerSecond(b, url, pgbenchScript))
		withBodies := insertsPerSecond(b, url, pgbenchWhole)
		deliveries = append(deliveries, deliveriesIn(b, p.public, round, 3*time.Second))
		taken = append(taken, takenIn(b, db))
		bare, whole = append(bare, deliveries[round]/inserts[round]), append(whole, deliveries[round]/withBodies)
	}
	for unit, all := range map[string][]float64{
		"ratio": bare, "ratio-whole": whole, "inserts/s": inserts, "deliveries/s": deliveries, "taken-in/s": taken,
	} {
		b.ReportMetric(turns.Median(all), unit)
	}
}

// takenIn waits until all that was delivered is taken in, and gives how much that was a
// second.
func takenIn(b *testing.B, db *pgxpool.Pool) float64 {
	b.Helper()
	began, first := time.Now(), -1
	for ; ; time.Sleep(20 * time.Millisecond) {
		var left int
		err := db.QueryRow(b.Context(), `SELECT count(*) FROM reconciler.events
			WHERE tenant = 'default' AND source = 'stripe-main' AND state IN ('new', 'waiting')`).Scan(&left)
		if err != nil {
			b.Fatal(err)
		}
		if first = max(first, left); left == 0 {
			return float64(first) / time.Since(began).Seconds()
		}
		if time.Since(began) > 2*time.Minute {
			b.Fatalf("%d events are still to be taken in", left)
		}
	}
}

// benchClients is how many deliver at once, as pgbench's clients insert.
const benchClients = 16

// deliveriesIn posts from 16 clients for a while and gives how many a second were stored.
//
// The clients are bare as pgbench's are: each has one connection, on which it sends
// requests that were rendered before, and reads no more of an answer than it must. They
// work on the cores that are measured, and net/http's client alone would take as much of
// them as what it asks.
func deliveriesIn(b *testing.B, base string, round int, span time.Duration) float64 {
	b.Helper()
	// No source may be delivered more than that in a round, so that none runs out.
	requests := renderRequests(round, int(span.Seconds()+1)*deliveriesPerSecond)
	var next atomic.Int64
	var posters sync.WaitGroup
	began := time.Now()
	for range benchClients {
		posters.Go(func() {
			conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
			if err != nil {
				b.Error(err)
				return
			}
			defer func() { _ = conn.Close() }()
			for buffer := make([]byte, 4096); time.Since(began) < span; {
				n := int(next.Add(1)) - 1
				if n >= len(requests) {
					b.Errorf("%d deliveries are not enough", n)
					return
				}
				if err := postBare(conn, buffer, requests[n]); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	posters.Wait()
	return float64(next.Load()) / time.Since(began).Seconds()
}

// renderRequests makes the bytes of requests about different events.
func renderRequests(round, n int) [][]byte {
	all := make([][]byte, n)
	for i := range all {
		id := fmt.Sprintf("%d_%d", round, i)
		body := refundEvent("evt_"+id, "re_"+id, "op_"+id)
		all[i] = fmt.Appendf(nil, "POST /webhooks/stripe-main HTTP/1.1\r\nHost: bench\r\nStripe-Signature: %s\r\nContent-Length: %d\r\n\r\n%s",
			delivery{body: body}.header(), len(body), body)
	}
	return all
}

// postBare sends one request over a connection that stays, and fails unless it is answered
// as stored.
func postBare(conn net.Conn, buffer, request []byte) error {
	if _, err := conn.Write(request); err != nil {
		return err
	}
	for n := 0; ; {
		more, err := conn.Read(buffer[n:])
		if n += more; err != nil {
			return fmt.Errorf("%w after %q", err, buffer[:n])
		}
		head, text, whole := bytes.Cut(buffer[:n], []byte("\r\n\r\n"))
		switch {
		case !whole || !bytes.HasSuffix(text, []byte("\n")):
		case bytes.HasPrefix(head, []byte("HTTP/1.1 200 ")) && string(text) == "stored\n":
			return nil
		default:
			return fmt.Errorf("answer %q", buffer[:n])
		}
	}
}

// BenchmarkWebhookToClosed delivers 100 events a second for five seconds and measures how
// long after each acknowledgement its operation is closed. 1 s for 99 of 100 is the
// budget. Run it with -benchtime=1x.
func BenchmarkWebhookToClosed(b *testing.B) {
	const events, perSecond = 500, 100
	for b.Loop() {
		url := durableURL(b)
		p := startProcess(b, url)
		db, err := pgxpool.New(b.Context(), url)
		if err != nil {
			b.Fatal(err)
		}
		openMany(b, db, events)
		acked := make([]time.Time, events)
		tick := time.NewTicker(time.Second / perSecond)
		var posters sync.WaitGroup
		for n := range events {
			<-tick.C
			posters.Go(func() {
				id := fmt.Sprintf("%06d", n)
				if status, answer := (delivery{body: refundEvent("evt_"+id, "re_"+id, "op_"+id)}).post(b, p.public); status != http.StatusOK {
					b.Errorf("%d %s", status, answer)
				}
				acked[n] = time.Now()
			})
		}
		posters.Wait()
		tick.Stop()
		waits := closedAfter(b, db, acked)
		b.ReportMetric(waits[len(waits)/2].Seconds()*1000, "ms-p50")
		b.ReportMetric(waits[len(waits)*99/100].Seconds()*1000, "ms-p99")
		db.Close()
		p.kill(b)
	}
}

// openMany records operations whose answers were lost, for the daemon's policy.
func openMany(b *testing.B, db *pgxpool.Pool, n int) {
	b.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for policies := 0; policies == 0; time.Sleep(20 * time.Millisecond) {
		if err := db.QueryRow(b.Context(), `SELECT count(*) FROM reconciler.policies`).Scan(&policies); err != nil || time.Now().After(deadline) {
			b.Fatalf("no policy was applied: %v", err)
		}
	}
	ids := make(chan string)
	var agents sync.WaitGroup
	for range 16 {
		agents.Go(func() {
			for id := range ids {
				openOne(b, db, id)
			}
		})
	}
	for i := range n {
		ids <- fmt.Sprintf("op_%06d", i)
	}
	close(ids)
	agents.Wait()
}

// openOne records an operation whose answer was lost.
func openOne(b *testing.B, db *pgxpool.Pool, id string) {
	b.Helper()
	var out map[string]any
	call := func(function string, in map[string]any) {
		out = nil
		if err := db.QueryRow(b.Context(), `SELECT reconciler.`+function+`($1)`, in).Scan(&out); err != nil {
			b.Errorf("%s: %v", function, err)
		}
	}
	call("open_operation", map[string]any{
		"action": "refund.create", "target": "order:" + id, "id": id, "key": "k-" + id, "amount": 1000, "currency": "EUR",
		"parent": "ch_" + id, "request": map[string]any{},
	})
	call("claim_operation", map[string]any{"operation_id": id, "holder": "agent"})
	call("finish_attempt", map[string]any{"operation_id": id, "token": out["token"], "class": "indeterminate"})
}

// closedAfter waits for all operations and says how long each took, sorted.
func closedAfter(b *testing.B, db *pgxpool.Pool, acked []time.Time) []time.Duration {
	b.Helper()
	var waits []time.Duration
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		rows, err := db.Query(b.Context(), `SELECT j.at FROM reconciler.journal j JOIN reconciler.operations o USING (tenant, operation_id)
			WHERE o.state = 'succeeded' AND j.seq = o.chain_seq ORDER BY j.operation_id`)
		if err != nil {
			b.Fatal(err)
		}
		waits = waits[:0]
		for n := 0; rows.Next(); n++ {
			var at time.Time
			if err := rows.Scan(&at); err != nil {
				b.Fatal(err)
			}
			waits = append(waits, at.Sub(acked[n]))
		}
		if len(waits) == len(acked) {
			slices.Sort(waits)
			return waits
		}
		if time.Now().After(deadline) {
			b.Fatalf("%d of %d operations are %s", len(waits), len(acked), recon.Succeeded)
		}
	}
}
