package daemon

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-1c4f4dc2/reconciler/internal/localpg"
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

// One row of the same table with a body of the same size, by a program in C that does
// nothing else.
const pgbenchScript = `
\set n random(1, 1000000000000)
INSERT INTO reconciler.events (tenant, system, account, mode, id, source, type, signed, created_at, received_at, last_received_at, deliveries, state, next_try, body_hash)
VALUES ('default', 'stripe', 'acct_1', 'live', 'evt_' || (:n)::bigint, 'pgbench', 'refund.created', true, now(), now(), now(), 1, 'new', now(), sha256('x')) ON CONFLICT DO NOTHING;
`

var pgbenchRate = regexp.MustCompile(`tps = ([0-9.]+)`)

// insertsPerSecond is what the server takes of single rows from 16 clients.
func insertsPerSecond(b *testing.B, url string, script string) float64 {
	b.Helper()
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
// turns; the ratio is the median, and 0.5 is the budget. Run it with -benchtime=3x.
func BenchmarkWebhooks(b *testing.B) {
	url := durableURL(b)
	p := startProcess(b, url)
	defer p.kill(b)
	script := filepath.Join(b.TempDir(), "insert.sql")
	if err := os.WriteFile(script, []byte(pgbenchScript), 0o644); err != nil {
		b.Fatal(err)
	}
	var ratios []float64
	var inserts, deliveries float64
	round := 0
	for b.Loop() {
		round++
		inserts = insertsPerSecond(b, url, script)
		deliveries = deliveriesIn(b, p.public, round, 3*time.Second)
		ratios = append(ratios, deliveries/inserts)
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "ratio")
	b.ReportMetric(inserts, "inserts/s")
	b.ReportMetric(deliveries, "deliveries/s")
}

// deliveriesIn posts from 16 clients for a while. The bodies are signed before.
func deliveriesIn(b *testing.B, base string, round int, span time.Duration) float64 {
	b.Helper()
	const clients, each = 16, 4000
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	type signed struct {
		body   []byte
		header string
	}
	var all [clients][]signed
	for c := range clients {
		for n := range each {
			id := fmt.Sprintf("evt_%d_%d_%d", round, c, n)
			body := refundEvent(id, "re_"+id, "op_"+id)
			all[c] = append(all[c], signed{body, delivery{body: body}.header()})
		}
	}
	var counts [clients]int
	var posters sync.WaitGroup
	began := time.Now()
	for c := range clients {
		posters.Go(func() {
			for _, s := range all[c] {
				if time.Since(began) > span {
					return
				}
				req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, base+"/webhooks/stripe-main", bytes.NewReader(s.body))
				if err != nil {
					b.Error(err)
					return
				}
				req.Header.Set("Stripe-Signature", s.header)
				resp, err := client.Do(req)
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body) // so that the connection is used again
				_ = resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					b.Errorf("answer %d", resp.StatusCode)
					return
				}
				counts[c]++
			}
		})
	}
	posters.Wait()
	total := 0
	for _, n := range counts {
		total += n
	}
	return float64(total) / time.Since(began).Seconds()
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
