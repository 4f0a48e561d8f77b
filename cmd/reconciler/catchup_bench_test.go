package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

const (
	// outageRate is how many operations a second became unknown: what Stripe takes of
	// one account.
	outageRate = 100
	// firstClosed is how many are waited for at the default pace of asking.
	firstClosed = 1000
	// mostClosed is how many are then closed as fast as the provider answers.
	mostClosed = 100_000
)

// BenchmarkCatchUp starts the real program on a ledger in which very many operations
// became unknown during an outage that is over. s-first is the time from the start of the
// process until the first thousand are closed, asking no faster than the default pace;
// s-more is that of a second process until a hundred thousand are, asking as fast as the
// provider answers, and calls/page its requests beside the pages that those effects fill.
// MiB is the most memory that either process held.
func BenchmarkCatchUp(b *testing.B) {
	for _, n := range []int{mostClosed, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				c := newCatchUp(b, n)
				first, paced := c.serve("", firstClosed)
				more, free := c.serve(", per_second: 1000000", mostClosed)
				b.ReportMetric(first.Seconds(), "s-first")
				b.ReportMetric(more.Seconds(), "s-more")
				b.ReportMetric(float64(c.calls)/(mostClosed/100), "calls/page")
				b.ReportMetric(max(paced, free), "MiB")
			}
		})
	}
}

// catchUp is a ledger after an outage, and the provider that is back.
type catchUp struct {
	*testing.B
	dir, url string
	stripe   *stripetest.Server
	db       *pgx.Conn
	calls    int // of the process that closed most
}

func newCatchUp(b *testing.B, n int) *catchUp {
	b.Helper()
	b.StopTimer()
	defer b.StartTimer()
	c := &catchUp{B: b, dir: b.TempDir(), url: pgtest.URL(b)}
	var err error
	if c.db, err = pgx.Connect(b.Context(), c.url); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.db.Close(b.Context()) }) // nothing is lost with it
	c.stripe, err = stripetest.Start(stripetest.Options{
		Now: time.Now, Seed: 1, Accounts: []stripetest.Account{{ID: "acct_1", Mode: "live", Key: "sk_live_TESTONLY"}},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.stripe.Close)
	lines := c.outage(n)
	c.run("policy", "apply", "--config", c.config(""))
	c.run("operations", "import", "--config", c.config(""), lines)
	if _, err := c.db.Exec(b.Context(), `VACUUM ANALYZE`); err != nil {
		b.Fatal(err)
	}
	return c
}

// outage makes effects whose answers were lost, and the file of their operations. The
// last of them is an hour old.
func (c *catchUp) outage(n int) string {
	c.Helper()
	begin := time.Now().Add(-time.Hour - time.Duration(n)*time.Second/outageRate).UTC()
	name := filepath.Join(c.dir, "operations.jsonl")
	file, err := os.Create(name)
	if err != nil {
		c.Fatal(err)
	}
	out := bufio.NewWriter(file)
	effects := make([]recon.Effect, n)
	for i := range effects {
		id, at := fmt.Sprintf("op_%07d", i), begin.Add(time.Duration(i)*time.Second/outageRate)
		money := recon.Money{Minor: 4200, Currency: "EUR"}
		line, err := recon.MarshalOperation(recon.Operation{
			ID: recon.OperationID(id), Source: "stripe-main", Action: "refund.create", Target: "order:" + id, Parent: "ch_" + id, Key: "k-" + id,
			Money: money, State: recon.Unknown, Account: "acct_1", Mode: "live", CreatedAt: at, SentAt: at,
			Marks: []recon.Mark{recon.MarkKey, recon.MarkReference},
		})
		if err != nil {
			c.Fatal(err)
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			c.Fatal(err)
		}
		effects[i] = recon.Effect{
			ID: "re_" + id, Kind: "refund", Status: recon.Completed, Parent: "ch_" + id, Account: "acct_1", Mode: "live", Key: "k-" + id,
			Money: money, Reference: id, CreatedAt: at.Add(300 * time.Millisecond),
		}
	}
	if err := out.Flush(); err != nil {
		c.Fatal(err)
	}
	if err := file.Close(); err != nil {
		c.Fatal(err)
	}
	if _, err := c.stripe.Load(effects, "op_id"); err != nil {
		c.Fatal(err)
	}
	return name
}

// config writes a configuration with more settings of the source.
func (c *catchUp) config(settings string) string {
	c.Helper()
	name := filepath.Join(c.dir, "reconciler.yaml")
	err := os.WriteFile(name, fmt.Appendf(nil, `
database: {url: %q}
listen: {public: "127.0.0.1:0", private: "127.0.0.1:0"}
schedule: {audit: off, reverify: off}
sources:
  - {name: stripe-main, kind: stripe, settings: {account: acct_1, api_key: "${KEY}", api_url: %q, marker: op_id%s}}
actions:
  refund.create: {source: stripe-main, effect: refund, class: irreversible}
`, c.url, c.stripe.URL(), settings), 0o600)
	if err != nil {
		c.Fatal(err)
	}
	return name
}

// run runs a verb to its end.
func (c *catchUp) run(args ...string) {
	c.Helper()
	var said bytes.Buffer
	if err := newProgram(c.B, &said, args...).cmd.Run(); err != nil {
		c.Fatalf("%s: %v\n%s", args, err, &said)
	}
}

// serve runs the daemon until so many operations are closed, and tells how long that took
// and the most memory that it held.
func (c *catchUp) serve(settings string, closed int) (took time.Duration, peak float64) {
	c.Helper()
	log, err := os.Create(filepath.Join(c.dir, "serve.log"))
	if err != nil {
		c.Fatal(err)
	}
	defer log.Close()
	calls := len(c.stripe.Calls())
	p := startProgram(c.B, log, "serve", "--config", c.config(settings))
	began := time.Now()
	for done := 0; done < closed; time.Sleep(250 * time.Millisecond) {
		if time.Since(began) > time.Hour {
			c.Fatalf("%d of %d are closed after %s", done, closed, time.Since(began))
		}
		if err := c.db.QueryRow(c.Context(), `SELECT count(*) FROM reconciler.operations WHERE state = 'succeeded'`).Scan(&done); err != nil {
			c.Fatal(err)
		}
	}
	took, peak = time.Since(began), p.peak()
	if _, err := p.stop(); err != nil {
		text, _ := os.ReadFile(log.Name()) // the error says enough without it
		c.Errorf("it ended with %v\n%s", err, text)
	}
	c.calls = len(c.stripe.Calls()) - calls
	return took, peak
}
