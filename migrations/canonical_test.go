package migrations_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/gowebpki/jcs"
	"pgregory.net/rapid"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
)

func TestDerivedKeysAreThoseOfEveryOtherLanguage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/action_key_vectors.json")
	must(t, err)
	var vectors []struct {
		Case, Action, Target, Key string
		Step                      int64
	}
	must(t, json.Unmarshal(text, &vectors))
	if len(vectors) < 11 {
		t.Fatalf("only %d vectors", len(vectors))
	}
	conn := connect(t, pgtest.URL(t))
	for _, v := range vectors {
		var key string
		must(t, conn.QueryRow(t.Context(), `SELECT reconciler.derived_key($1, $2, $3, $4)`,
			v.Case, v.Action, v.Target, v.Step).Scan(&key))
		if key != v.Key {
			t.Errorf("key of %q, %q, %q, %d is %s, want %s", v.Case, v.Action, v.Target, v.Step, key, v.Key)
		}
	}
}

// texts are made of what JSON escapes, and of characters on both sides of the surrogates,
// which the order of keys turns on.
var texts = rapid.StringOfN(rapid.OneOf(
	rapid.RuneFrom([]rune("ab\"\\/<>&\b\t\n\f\r\u0001\u001f\u007f\u0080é\u2028\u2029\ud7ff\ue000\ufffd\uffff😀𐀀\U0010fffe\U0010ffff")),
	rapid.Rune().Filter(func(r rune) bool { return r != 0 }),
), 0, 6, -1)

const beyond = int64(1) << 53

var values = rapid.Custom(func(t *rapid.T) any { return value(t, 3) })

func value(t *rapid.T, depth int) any {
	kinds := 4
	if depth > 0 {
		kinds = 6
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return rapid.Int64Range(-beyond, beyond).Draw(t, "number")
	case 3:
		return texts.Draw(t, "text")
	case 4:
		list := make([]any, rapid.IntRange(0, 3).Draw(t, "length"))
		for i := range list {
			list[i] = value(t, depth-1)
		}
		return list
	}
	members := map[string]any{}
	for range rapid.IntRange(0, 5).Draw(t, "members") {
		members[texts.Draw(t, "name")] = value(t, depth-1)
	}
	return members
}

func TestCanonicalJSONIsThatOfTheRFC(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.URL(t))
	rapid.Check(t, func(rt *rapid.T) {
		given, err := json.Marshal(values.Draw(rt, "value"))
		must(t, err)
		// The oracle takes objects and lists only.
		given = append(append([]byte{'['}, given...), ']')
		want, err := jcs.Transform(given)
		must(t, err)
		var got string
		must(t, conn.QueryRow(t.Context(), `SELECT reconciler.canonical_json($1::jsonb)`, string(given)).Scan(&got))
		if got != string(want) {
			rt.Fatalf("canonical form of %s\n got %s\nwant %s", given, got, want)
		}
	})
}

func TestCanonicalJSONOfNumbersAndRepeatedNames(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.URL(t))
	for given, want := range map[string]string{
		`1.0`:                       `1`,
		`1e3`:                       `1000`,
		`-0`:                        `0`,
		`9007199254740992`:          `9007199254740992`,
		`{"a":1,"a":2}`:             `{"a":2}`,
		`{"b":1, "a":[ 1 , "x" ] }`: `{"a":[1,"x"],"b":1}`,
		`"\u00e9\/"`:                `"é/"`,
	} {
		var got string
		must(t, conn.QueryRow(t.Context(), `SELECT reconciler.canonical_json($1::jsonb)`, given).Scan(&got))
		if got != want {
			t.Errorf("canonical form of %s is %s, want %s", given, got, want)
		}
	}
	for _, given := range []string{`0.1`, `1e-1`, `9007199254740993`, `-9007199254740993`, `1e400`, `{"a":[{"b":2.5}]}`} {
		_, err := conn.Exec(t.Context(), `SELECT reconciler.canonical_json($1::jsonb)`, given)
		refused(t, err, "22023")
	}
}
