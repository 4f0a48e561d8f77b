package migrations_test

import (
	"encoding/json"
	"errors"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gowebpki/jcs"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
)

// vast is an exponent that no arithmetic of this test is up to: 0e9999 may be 0, or refused.
var vast = regexp.MustCompile(`[eE][+-]?\d{4}`)

// FuzzCanonicalJSON holds that any JSON has one canonical form, that of the RFC, but for
// what [notKept] names: that is refused, and nothing else is.
func FuzzCanonicalJSON(f *testing.F) {
	db := pgtest.Pool(f)
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) || len(text) > 1<<14 {
			return
		}
		given := "[" + text + "]" // as fields of operations are: inside something
		want, noForm := jcs.Transform([]byte(given))
		var got string
		err := db.QueryRow(t.Context(), `SELECT reconciler.canonical_json($1::jsonb)`, given).Scan(&got)
		if fault, ok := errors.AsType[*pgconn.PgError](err); ok {
			switch class := fault.Code[:2]; {
			case class != "22" && class != "54": // data, or too deep for the database
				t.Errorf("%s ends with %v", given, err)
			case noForm == nil && notKept(given) == "" && !vast.MatchString(given):
				t.Errorf("%s has the form %s and is refused: %v", given, want, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if noForm != nil || vast.MatchString(given) {
			return // no form: such as a name twice, of which the last one counts
		}
		if why := notKept(given); why != "" {
			t.Errorf("%s is taken as %s, though it holds %s", given, got, why)
		} else if got != string(want) {
			t.Errorf("canonical form of %s\n got %s\nwant %s", given, got, want)
		}
		var again string
		if err := db.QueryRow(t.Context(), `SELECT reconciler.canonical_json($1::jsonb)`, got).Scan(&again); err != nil || again != got {
			t.Errorf("the canonical form %s has another one: %s (%v)", got, again, err)
		}
	})
}

// notKept says what in a JSON text the ledger does not take, though it has a canonical form;
// empty: nothing.
func notKept(text string) string {
	if !utf8.ValidString(text) {
		return "bytes that are no text"
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	depth := 0
	for {
		token, err := d.Token()
		if err != nil {
			return ""
		}
		switch v := token.(type) {
		case json.Delim:
			if v == ']' || v == '}' {
				depth--
				continue
			}
			depth++
		case string:
			if strings.ContainsRune(v, 0) {
				return "NUL, which no database text holds"
			}
		case json.Number:
			if why := notWhole(v.String()); why != "" {
				return why
			}
		}
		if _, opens := token.(json.Delim); opens && depth > 65 || !opens && depth > 64 {
			return "more than 64 levels"
		}
	}
}

// notWhole says why a number is not taken; empty: it is.
func notWhole(number string) string {
	v, ok := new(big.Rat).SetString(number)
	switch limit := big.NewRat(1<<53, 1); {
	case !ok:
		return "a number that is none"
	case !v.IsInt():
		return "a fraction"
	case v.Abs(v).Cmp(limit) > 0:
		return "a number beyond 2^53"
	}
	return ""
}
