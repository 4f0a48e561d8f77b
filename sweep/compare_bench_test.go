package sweep_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/internal/turns"
	"github.com/seed-1c4f4dc2/reconciler/rules"
	"github.com/seed-1c4f4dc2/reconciler/sources/files"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

// benchFiles writes n operations and their effects, as JSON Lines and as a table.
func benchFiles(b *testing.B, n int) (operations, effects, table string) {
	b.Helper()
	var o, e, t bytes.Buffer
	t.WriteString("id,reference,key,parent,amount,currency,status,created_at\n")
	for i := range n {
		id := fmt.Sprintf("op_%07d", i*7919%n)
		o.WriteString(op(id, "succeeded", fmt.Sprintf(`,"parent":"ch_%s","key":"%032d","amount":4200,"currency":"EUR"`, id, i)) + "\n")
		e.WriteString(eff("re_"+id, "completed", fmt.Sprintf(`,"reference":%q,"parent":"ch_%s","key":"%032d","amount":4200,"currency":"EUR"`, id, id, i)) + "\n")
		fmt.Fprintf(&t, "re_%s,%s,%032d,ch_%s,4200,EUR,completed,2026-03-10T10:00:05Z\n", id, id, i, id)
	}
	dir := b.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			b.Fatal(err)
		}
		return path
	}
	return write("operations.jsonl", o.Bytes()), write("effects.jsonl", e.Bytes()), write("effects.csv", t.Bytes())
}

// table is the column map of benchFiles.
func table(b *testing.B) *files.Format {
	b.Helper()
	f, err := files.FormatOf("stripe", files.Settings{
		Format: "table", Kind: "refund", Unit: "minor", Dates: "rfc3339", Statuses: map[string]string{"completed": "completed"},
		Columns: files.Columns{ID: "id", Reference: "reference", Key: "key", Parent: "parent", Amount: "amount", Currency: "currency", Status: "status", CreatedAt: "created_at"},
	})
	if err != nil {
		b.Fatal(err)
	}
	f.Kinds = []string{"refund"}
	return &f
}

// compareFiles compares two files and gives how long it took and the most memory that the
// program held.
func compareFiles(b *testing.B, operations, effects string, format *files.Format, n int) (time.Duration, uint64) {
	b.Helper()
	debug.FreeOSMemory() // what made the files is no part of it
	peak := watchMemory()
	began := time.Now()
	open := func(name string) *os.File {
		f, err := os.Open(name)
		if err != nil {
			b.Fatal(err)
		}
		return f
	}
	o, e := open(operations), open(effects)
	defer o.Close()
	defer e.Close()
	r, err := sweep.Compare(context.Background(), sweep.CompareOptions{Operations: o, Effects: e, EffectsFormat: format, Now: april})
	if err != nil || r.Classes.Operations[rules.ClassMatched] != n {
		b.Fatal(err, r.Classes)
	}
	return time.Since(began), peak()
}

// watchMemory gives what ends the watch and tells the most memory that was held.
func watchMemory() func() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	stop, most := make(chan struct{}), uint64(0)
	var done sync.WaitGroup
	done.Add(1)
	go func() {
		defer done.Done()
		for {
			metrics.Read(sample)
			most = max(most, sample[0].Value.Uint64()-sample[1].Value.Uint64())
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() uint64 {
		close(stop)
		done.Wait()
		return most
	}
}

// decodeFiles reads both files and decodes their JSON, and does nothing else.
func decodeFiles(b *testing.B, names ...string) time.Duration {
	b.Helper()
	began := time.Now()
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		for l := range bytes.Lines(content) {
			var v struct {
				ID, Source, Action, Kind, Target, Parent, Key, Currency, State, Status, Account, Mode, Reference string
				Amount                                                                                           int64
				CreatedAt                                                                                        time.Time `json:"created_at"`
				SentAt                                                                                           time.Time `json:"sent_at"`
			}
			if err := json.Unmarshal(l, &v); err != nil {
				b.Fatal(err)
			}
		}
	}
	return time.Since(began)
}

// plainPython is the obvious script: a dict of rows, and a look-up for each of the others.
const plainPython = `
import csv, json, sys
ops = {}
for line in open(sys.argv[1]):
    o = json.loads(line)
    ops[o["id"]] = o
seen, off = set(), 0
for row in csv.DictReader(open(sys.argv[2])):
    o = ops.get(row["reference"])
    off += o is None or row["reference"] in seen or o["amount"] != int(row["amount"]) or o["currency"] != row["currency"]
    seen.add(row["reference"])
print(len(ops) - len(seen), off)
`

func runPython(b *testing.B, operations, effects string) time.Duration {
	b.Helper()
	began := time.Now()
	if out, err := exec.CommandContext(b.Context(), "python3", "-c", plainPython, operations, effects).CombinedOutput(); err != nil {
		b.Fatalf("python3: %v: %s", err, out)
	}
	return time.Since(began)
}

// BenchmarkCompare holds a comparison of JSON Lines against reading and decoding alone, and
// one of a table against plain Python, round by round.
func BenchmarkCompare(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		operations, effects, rows := benchFiles(b, n)
		b.Run(fmt.Sprintf("lines/%d", n), func(b *testing.B) {
			var rounds turns.Rounds
			var peak uint64
			for b.Loop() {
				took, held := compareFiles(b, operations, effects, nil, n)
				rounds.Add(took, decodeFiles(b, operations, effects))
				peak = max(peak, held)
			}
			rounds.Report(b, "x-decoding")
			b.ReportMetric(float64(peak>>20), "MiB-peak")
		})
		b.Run(fmt.Sprintf("table/%d", n), func(b *testing.B) {
			var rounds turns.Rounds
			var peak uint64
			for b.Loop() {
				took, held := compareFiles(b, operations, rows, table(b), n)
				rounds.Add(took, runPython(b, operations, rows))
				peak = max(peak, held)
			}
			rounds.Report(b, "x-python")
			b.ReportMetric(float64(peak>>20), "MiB-peak")
		})
	}
}
