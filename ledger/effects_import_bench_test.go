package ledger_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-1c4f4dc2/reconciler/internal/turns"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/sources/files"
)

// importedCSV reads a CSV for the ledger, as the program does.
type importedCSV struct {
	reader *files.Reader
	twins  *files.Twins
	row    files.Row
	err    error
}

func (c *importedCSV) Next(line *ledger.EffectLine) bool {
	if c.err != nil || !c.reader.Next(&c.row) {
		return false
	}
	*line = ledger.EffectLine{Line: c.row.Line, Effect: c.row.Effect}
	line.Again, c.err = c.twins.Meet(&c.row)
	return c.err == nil
}

func (c *importedCSV) Err() error {
	if c.err != nil {
		return c.err
	}
	return c.reader.Err()
}

func benchCSV(n int) []byte {
	var b bytes.Buffer
	b.WriteString("id,reference,key,parent,amount,currency,status,created_at\n")
	for i := range n {
		fmt.Fprintf(&b, "re_%012x,op_%09d,key-%016x,ch_%012x,%d,USD,completed,%s\n", (i*7919)%(1<<31), i, i*104729, i*15485863, 100+i%999899,
			t0.Add(time.Duration(i)*time.Second).Format(time.RFC3339))
	}
	return b.Bytes()
}

// The limit: the same rows in, by PostgreSQL alone.
const (
	bareRowsSQL = `CREATE TEMPORARY TABLE bare (id text, reference text, key text, parent text, amount bigint, currency text, status text,
		created_at timestamptz) ON COMMIT DROP`
	bareCopyRowsSQL = `COPY bare FROM STDIN (FORMAT csv, HEADER)`
	bareEffectsSQL  = `INSERT INTO reconciler.effects (tenant, system, account, mode, id, source, kind, status, amount, currency, parent, reference,
		key, created_at, first_seen_at, seen_at)
	SELECT 'default', 'stripe', 'acct_1', 'live', b.id, 'stripe-main', 'refund', b.status, b.amount, b.currency, b.parent, b.reference, b.key,
		b.created_at, $1, $1
	FROM bare b ON CONFLICT (tenant, system, account, mode, id) DO NOTHING`
)

// BenchmarkImportEffects brings a CSV in, round about with COPY and INSERT ON CONFLICT
// of the same rows. The ratio is the median of the rounds'.
func BenchmarkImportEffects(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprintf("%d", n), func(b *testing.B) {
			file := benchCSV(n)
			format, err := files.FormatOf(source, files.Settings{
				Format: "bench", System: "stripe", Account: "acct_1", Unit: "minor", Dates: "rfc3339", Kind: "refund",
				Columns: files.Columns{ID: "id", Reference: "reference", Key: "key", Parent: "parent", Amount: "amount", Currency: "currency",
					Status: "status", CreatedAt: "created_at"},
				Statuses: map[string]string{"completed": "completed"},
			})
			if err != nil {
				b.Fatal(err)
			}
			led, db := benchLedger(b)
			var rounds turns.Rounds
			for b.Loop() {
				began := time.Now()
				r, err := led.ImportEffects(b.Context(), ledger.EffectImport{Source: source, System: "stripe", Now: t0,
					File: &importedCSV{reader: files.Open(format, bytes.NewReader(file), "bench.csv"), twins: files.NewTwins()}})
				if err != nil || r.Imported != n {
					b.Fatalf("%+v: %v", r, err)
				}
				ours := time.Since(began)
				emptyEffects(b, db)
				began = time.Now()
				copyBare(b, db, file)
				rounds.Add(ours, time.Since(began))
				emptyEffects(b, db)
			}
			rounds.Report(b, "ratio")
		})
	}
}

func emptyEffects(b *testing.B, db *pgxpool.Pool) {
	b.Helper()
	for _, sql := range []string{`TRUNCATE reconciler.effects`, `CHECKPOINT`} {
		if _, err := db.Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
	}
}

func copyBare(b *testing.B, db *pgxpool.Pool, file []byte) {
	b.Helper()
	tx, err := db.Begin(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer tx.Rollback(b.Context())
	if _, err := tx.Exec(b.Context(), bareRowsSQL); err != nil {
		b.Fatal(err)
	}
	if _, err := tx.Conn().PgConn().CopyFrom(b.Context(), bytes.NewReader(file), bareCopyRowsSQL); err != nil {
		b.Fatal(err)
	}
	if _, err := tx.Exec(b.Context(), bareEffectsSQL, t0); err != nil {
		b.Fatal(err)
	}
	if err := tx.Commit(b.Context()); err != nil {
		b.Fatal(err)
	}
}
