package migrations_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/gowebpki/jcs"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
)

// FuzzCanonicalJSON holds that of any JSON there is one canonical form, that of the RFC, or
// an error that says what the ledger does not take: fractions, numbers beyond 2^53, NUL.
func FuzzCanonicalJSON(f *testing.F) {
	for _, text := range []string{
		`{"b":1,"a":[true,null,"x"]}`, `{"\ud83d\ude00":1,"\ufb33":2}`, `"\u0000"`, `-0`, `1e3`, `1.5`, `9007199254740993`,
		`{"":{"":[]}}`, `"\ud800"`, `[1,2`, `"é\/\u2028"`, `{"a":1,"a":2}`, `100000000000000000000e-5`,
	} {
		f.Add(text)
	}
	db := pgtest.Pool(f)
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) || len(text) > 1<<14 {
			return
		}
		given := "[" + text + "]" // the oracle takes objects and lists only
		var got string
		err := db.QueryRow(t.Context(), `SELECT reconciler.canonical_json($1::jsonb)`, given).Scan(&got)
		if fault, ok := errors.AsType[*pgconn.PgError](err); ok {
			if class := fault.Code[:2]; class != "22" && class != "54" { // data, or too deep
				t.Errorf("%s ends with %v", given, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		want, err := jcs.Transform([]byte(given))
		if err == nil && got != string(want) {
			t.Errorf("canonical form of %s\n got %s\nwant %s", given, got, want)
		}
		var again string
		if err := db.QueryRow(t.Context(), `SELECT reconciler.canonical_json($1::jsonb)`, got).Scan(&again); err != nil || again != got {
			t.Errorf("the canonical form %s has another one: %s (%v)", got, again, err)
		}
	})
}
