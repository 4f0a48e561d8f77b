package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
)

const northwindConfig = `
sources:
  - name: stripe-main
    kind: stripe
    settings: {api_key: "${STRIPE_API_KEY}", accounts: [{account: acct_1NWEU}, {account: acct_1NWUS, connected: true}]}
actions:
  refund.create: {source: stripe-main, effect: refund, class: irreversible}
`

// A shop's month, once as Stripe's balance report and once as JSON Lines, tells of the
// same effects: what both tell is there already, and nothing contradicts.
func TestNorthwindComesInTwice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := filepath.Join(dir, "reconciler.yaml")
	if err := os.WriteFile(config, []byte(northwindConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	environ := []string{"RECONCILER_DATABASE_URL=" + pgtest.URL(t), "STRIPE_API_KEY=sk_live_" + "TESTONLY"}
	counts := func(file string) string {
		t.Helper()
		var out, err bytes.Buffer
		code := run(t.Context(), []string{"import", "--config", config, "--source", "stripe-main", "--format", "json", file}, environ,
			streams{in: bytes.NewReader(nil), out: &out, err: &err})
		var r imported
		if code != exitDone || json.Unmarshal(out.Bytes(), &r) != nil {
			t.Fatalf("exit %d: %s%s", code, &out, &err)
		}
		return fmt.Sprintf("%d = %d + %d + %d + %d %s", r.Rows, r.Imported, r.Repeated, r.SetAside, r.Refused, r.Encoding)
	}
	const csv, lines = "../../sources/files/testdata/northwind/stripe_refunds_balance.csv", "../../sweep/testdata/northwind/effects.jsonl"
	if got := counts(csv); got != "1668 = 1663 + 5 + 0 + 0 utf-8" {
		t.Errorf("the report: %s", got)
	}
	if got := counts(csv); got != "1668 = 0 + 1668 + 0 + 0 utf-8" {
		t.Errorf("the report again: %s", got)
	}
	// The lines add what a report does not show: what is in flight, keys, and that a failure
	// was a reversal. 7 refunds are of test mode, the other lines of other providers.
	if got := counts(lines); got != "2007 = 616 + 1033 + 358 + 0 utf-8" {
		t.Errorf("the lines: %s", got)
	}
	if got := counts(lines); got != "2007 = 0 + 1649 + 358 + 0 utf-8" {
		t.Errorf("the lines again: %s", got)
	}
}

// A named pipe is opened once: who writes into it takes its closing for the end.
func TestANamedPipeIsBroughtIn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config, pipe := filepath.Join(dir, "reconciler.yaml"), filepath.Join(dir, "effects.jsonl")
	if err := errors.Join(os.WriteFile(config, []byte(northwindConfig), 0o600), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	environ := []string{"RECONCILER_DATABASE_URL=" + pgtest.URL(t), "STRIPE_API_KEY=sk_live_" + "TESTONLY"}
	written := make(chan error, 1)
	go func() {
		written <- os.WriteFile(pipe, []byte(`{"id":"re_1","source":"stripe-main","kind":"refund","status":"completed","created_at":"2026-03-01T00:00:00Z","account":"acct_1NWEU"}`+"\n"), 0)
	}()
	var out, failure bytes.Buffer
	done := make(chan int, 1)
	go func() {
		done <- run(t.Context(), []string{"import", "--config", config, "--source", "stripe-main", pipe}, environ, streams{in: bytes.NewReader(nil), out: &out, err: &failure})
	}()
	select {
	case code := <-done:
		if err := <-written; code != exitDone || err != nil || !strings.Contains(out.String(), "1 row: 1 imported") {
			t.Errorf("exit %d, %v: %s%s", code, err, &out, &failure)
		}
	case <-time.After(time.Minute):
		t.Fatal("it waits for a writer that has gone")
	}
}

// The example of docs/files.md is brought in here, and answers as the page shows.
func TestTheColumnMapOfTheDocumentationIsTrue(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/files.md")
	if err != nil {
		t.Fatal(err)
	}
	block := func(begin string) string {
		t.Helper()
		_, rest, ok := strings.Cut(string(page), begin)
		text, _, closed := strings.Cut(rest, "```\n")
		if !ok || !closed {
			t.Fatalf("docs/files.md has no block %q", begin)
		}
		return text
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"giro.csv": block("```csv\n"), "reconciler.yaml": block("```yaml\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"import", "--config", filepath.Join(dir, "reconciler.yaml"), "--source", "bank-giro", filepath.Join(dir, "giro.csv")},
		[]string{"RECONCILER_DATABASE_URL=" + pgtest.URL(t)}, streams{in: bytes.NewReader(nil), out: &out, err: &errs})
	want := "giro.csv: " + block("```\ngiro.csv: ")
	if got := strings.ReplaceAll(out.String(), dir+string(filepath.Separator), ""); code != exitDone || got != want {
		t.Errorf("exit %d: %s\ngot:\n%s\nwant:\n%s", code, &errs, got, want)
	}
}
