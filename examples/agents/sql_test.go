package agents_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/internal/localpg"
	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// block is a fenced SQL block and the answer that stands below it.
var block = regexp.MustCompile("(?s)```sql\n(.*?)```\n```text\n(.*?)```\n")

// TestTheSessionsOfThePapersAreTrue runs the SQL of each paper in psql, one block after
// the other in one session, and compares what it answers with what the paper says.
func TestTheSessionsOfThePapersAreTrue(t *testing.T) {
	t.Parallel()
	for _, paper := range []string{"sql.md", "adopt.md"} {
		t.Run(paper, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("..", "..", "docs", paper))
			if err != nil {
				t.Fatal(err)
			}
			blocks := block.FindAllStringSubmatch(string(text), -1)
			if len(blocks) == 0 || len(blocks) != strings.Count(string(text), "```sql\n") {
				t.Fatalf("%d of %d SQL blocks have an answer", len(blocks), strings.Count(string(text), "```sql\n"))
			}
			var session, want strings.Builder
			for _, b := range blocks {
				session.WriteString("\\echo ---\n" + b[1])
				want.WriteString("---\n" + b[2])
			}
			if d := cmp.Diff(want.String(), psql(t, sessionDatabase(t), session.String())); d != "" {
				t.Errorf("the session (-paper +psql):\n%s", d)
			}
		})
	}
}

// sessionDatabase has the policies that the papers name.
func sessionDatabase(t *testing.T) string {
	t.Helper()
	url := pgtest.URL(t)
	l, err := ledger.Open(t.Context(), ledger.Options{URL: url, MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	refund, credit := recon.DefaultPolicy(), recon.DefaultPolicy()
	refund.Action, refund.Source, refund.Effect, refund.Class = "refund.create", "stripe-main", "refund", recon.Irreversible
	refund.Repeat, refund.KeyLifetime, refund.RepeatAnswer = recon.RepeatSameKey, recon.Duration(24*time.Hour), true
	credit.Action, credit.Source, credit.Effect, credit.Class = "credit.grant", "shop-db", "credit", recon.Reversible
	for _, p := range []*recon.Policy{&refund, &credit} {
		p.ResultFields = []string{"id"}
	}
	if _, err := l.ApplyPolicies(t.Context(), []recon.Policy{refund, credit}, time.Now()); err != nil {
		t.Fatal(err)
	}
	return url
}

// psql runs a script and returns what it prints, unaligned and without headers.
func psql(t *testing.T, url, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runLimit)
	defer cancel()
	program, err := exec.LookPath("psql")
	if err != nil {
		folder, err := localpg.Find(ctx)
		if err != nil {
			t.Fatal(err)
		}
		program = filepath.Join(folder, "psql")
	}
	cmd := exec.CommandContext(ctx, program, "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", url)
	cmd.Stdin = strings.NewReader(script)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("psql: %v\n%s%s", err, out, complaints.Bytes())
	}
	return string(out)
}
