package peers

import (
	"bufio"
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// pair is two tables that disagree in places that are known.
type pair struct {
	operations, effects string         // names of the files
	truth               map[string]int // discrepancies, by kind
}

// effectRow is one row of effects.csv, with the time by which the file is in order.
type effectRow struct {
	at   int64
	text string
}

// makePair writes n operations and their effects over a month: 0.02 % of the effects are
// missing, 0.01 % belong to nobody, 0.01 % stand twice under two ids and 0.01 % have another
// amount. The same n makes the same files.
func makePair(t *testing.T, n int) pair {
	t.Helper()
	dir := t.TempDir()
	p := pair{
		operations: filepath.Join(dir, "operations.csv"), effects: filepath.Join(dir, "effects.csv"),
		truth: map[string]int{"missing": max(1, n/5_000), "orphan": max(1, n/10_000), "duplicate": max(1, n/10_000), "mismatch": max(1, n/10_000)},
	}
	random := rand.New(rand.NewPCG(42, uint64(n)))
	picked := random.Perm(n)
	is := make(map[int]string)
	for _, kind := range []string{"missing", "duplicate", "mismatch"} {
		for range p.truth[kind] {
			is[picked[0]] = kind
			picked = picked[1:]
		}
	}
	const month, first = 31 * 24 * 3600, 1767225600 // 2026-01-01
	hex := func() string { return fmt.Sprintf("%016x%08x", random.Uint64(), random.Uint32()) }
	effect := func(at int64, id, reference, key, parent string, amount int, currency string) effectRow {
		return effectRow{at, fmt.Sprintf("%s,%s,%s,%s,%d,%s,succeeded,%s\n", id, reference, key, parent, amount, currency, instant(at))}
	}
	var effects []effectRow
	write(t, p.operations, "id,source,action,target,key,effect_id,parent,amount,currency,state,created_at\n", func(out *bufio.Writer) {
		for i := range n {
			at := first + int64(i)*month/int64(n)
			id, key, effectID := fmt.Sprintf("op_%09d", i), "k_"+hex(), "pi_"+hex()
			parent, amount, currency := "", 100+random.IntN(999_900), "usd"
			if i%10 == 9 {
				parent = fmt.Sprintf("ch_%012d", i-i%97)
			}
			if x := random.Float64(); x > 0.7 {
				currency = []string{"eur", "gbp", "jpy"}[random.IntN(3)]
			}
			fmt.Fprintf(out, "%s,provider,payment.create,order:%d,%s,%s,%s,%d,%s,succeeded,%s\n", id, i, key, effectID, parent, amount, currency, instant(at))
			made := at + 1 + random.Int64N(599)
			switch is[i] {
			case "missing":
				continue
			case "mismatch":
				amount++
			case "duplicate":
				effects = append(effects, effect(made+1+random.Int64N(59), "pi_"+hex(), id, key, parent, amount, currency))
			}
			effects = append(effects, effect(made, effectID, id, key, parent, amount, currency))
		}
	})
	for i := range p.truth["orphan"] {
		effects = append(effects, effect(first+random.Int64N(month), "pi_"+hex(), fmt.Sprintf("ext_%09d", i), "k_"+hex(), "", 4200, "usd"))
	}
	slices.SortStableFunc(effects, func(a, b effectRow) int { return cmp.Compare(a.at, b.at) })
	write(t, p.effects, "id,reference,key,parent,amount,currency,status,created_at\n", func(out *bufio.Writer) {
		for _, e := range effects {
			out.WriteString(e.text)
		}
	})
	return p
}

func instant(at int64) string { return time.Unix(at, 0).UTC().Format(time.RFC3339) }

// write writes a file; an error of the writer stays in it until it is flushed.
func write(t *testing.T, name, header string, rows func(*bufio.Writer)) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewWriterSize(f, 1<<20)
	out.WriteString(header)
	rows(out)
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
