package migrations_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOpenRejectsWhatNoPolicyAllows(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	p := policy()
	p.AmountRequired = true
	a.policy(p)
	for name, c := range map[string]struct {
		changes object
		reason  string
	}{
		"an unknown action":    {object{"action": "refund.crate"}, `no policy for action "refund.crate"`},
		"a needed amount":      {object{"amount": nil}, `needs an amount`},
		"a needed amount, too": {object{"amount": nil, "currency": nil}, `needs an amount`},
	} {
		got := a.open(c.changes)
		want := object{"operation_id": nil, "key": nil, "state": nil, "already": nil, "verdict": "rejected", "reason": got["reason"]}
		if diff := cmp.Diff(want, got); diff != "" || !strings.Contains(got.text("reason"), c.reason) {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	exec(t, a.pool, `UPDATE reconciler.policies SET active = false`)
	if got := a.open(nil); got["verdict"] != "rejected" {
		t.Errorf("a policy that is no longer active: %v, want rejected", got)
	}
}

func TestOpenRefusesBadInputAndChangesNothing(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	a.policy(policy())
	long := strings.Repeat("界", 1025)
	big := strings.Repeat("x", 65537)
	deep := strings.Repeat("[", 70) + strings.Repeat("]", 70)
	good := `"action":"refund.create","target":"t","request":{}`
	for name, c := range map[string]struct{ in, state, says string }{
		"no object":              {`[1]`, "22023", "must be a JSON object"},
		"null":                   {`null`, "22023", "must be a JSON object"},
		"an unknown field":       {`{` + good + `,"amonut":1}`, "22023", `no field "amonut"`},
		"no action":              {`{"target":"t","request":{}}`, "22023", `"action" is missing`},
		"no target":              {`{"action":"refund.create","request":{}}`, "22023", `"target" is missing`},
		"no request":             {`{"action":"refund.create","target":"t"}`, "22023", `"request" is missing`},
		"request null":           {`{"action":"refund.create","target":"t","request":null}`, "22023", `"request" is missing`},
		"a number for a text":    {`{"action":"refund.create","target":7,"request":{}}`, "22023", `"target" must be a text, not a number`},
		"an empty text":          {`{` + good + `,"key":""}`, "22023", `"key" is empty`},
		"a text too long":        {`{` + good + `,"key":"` + long + `"}`, "22023", `"key" has 1025 characters`},
		"a fraction":             {`{` + good + `,"amount":10.5,"currency":"EUR"}`, "22023", "whole number, not 10.5"},
		"a float":                {`{` + good + `,"amount":10.0,"currency":"EUR"}`, "22023", "whole number, not 10.0"},
		"an amount in quotes":    {`{` + good + `,"amount":"10","currency":"EUR"}`, "22023", "must be a whole number"},
		"nothing":                {`{` + good + `,"amount":0,"currency":"EUR"}`, "22023", "not above 0"},
		"less than nothing":      {`{` + good + `,"amount":-5,"currency":"EUR"}`, "22023", "not above 0"},
		"more than 64 bits":      {`{` + good + `,"amount":9223372036854775808,"currency":"EUR"}`, "22023", "out of range"},
		"no currency":            {`{` + good + `,"amount":5}`, "22023", `no "currency"`},
		"no such currency":       {`{` + good + `,"amount":5,"currency":"EURO"}`, "22023", "not a currency"},
		"a currency of letters":  {`{` + good + `,"amount":5,"currency":"ıqd"}`, "22023", "not a currency"},
		"a case without step":    {`{` + good + `,"case":"c"}`, "22023", "belong together"},
		"a step without case":    {`{` + good + `,"step":1}`, "22023", "belong together"},
		"a step in quotes":       {`{` + good + `,"case":"c","step":"1"}`, "22023", `"step" must be a whole number`},
		"a fraction in request":  {`{"action":"refund.create","target":"t","request":{"a":[0.5]}}`, "22023", "0.5 is not a whole number"},
		"beyond 2^53 in request": {`{"action":"refund.create","target":"t","request":{"a":9007199254740993}}`, "22023", "beyond 2^53"},
		"a request too large":    {`{"action":"refund.create","target":"t","request":{"a":"` + big + `"}}`, "22023", "at most 65536"},
		"metadata too large":     {`{` + good + `,"metadata":{"a":"` + big + `"}}`, "22023", "at most 65536"},
		"a request too deep":     {`{"action":"refund.create","target":"t","request":` + deep + `}`, "22023", "64 levels"},
		"U+0000":                 {`{"action":"refund.create","target":"a\u0000b","request":{}}`, "22P05", ""},
		"U+0000 in the request":  {`{"action":"refund.create","target":"t","request":{"a":"\u0000"}}`, "22P05", ""},
		"half a surrogate":       {`{"action":"refund.create","target":"\ud83d","request":{}}`, "22P02", ""},
		"no JSON":                {`{"action":`, "22P02", ""},
	} {
		_, err := a.pool.Exec(t.Context(), `SELECT reconciler.open_operation($1::text::jsonb)`, c.in)
		if err == nil {
			t.Errorf("%s is taken", name)
			continue
		}
		t.Run(name, func(t *testing.T) { refused(t, err, c.state) })
		if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want it to say %q", name, err, c.says)
		}
	}
	_, err := a.pool.Exec(t.Context(), `SELECT reconciler.open_operation(NULL)`)
	refused(t, err, "22023")
	var rows int
	scan(t, a.pool, `SELECT count(*) FROM reconciler.operations`, &rows)
	if rows != 0 {
		t.Errorf("%d rows were made of bad input", rows)
	}
}

func TestValuesAtTheirLimitsAreTaken(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	a.policy(policy())
	text := strings.Repeat("界", 1024)
	fill := func(bytes int) object { return object{"a": strings.Repeat("x", bytes-len(`{"a":""}`))} }
	many := map[string]any{}
	for i := range 7000 { // close to the limit when compact, beyond it with jsonb's spaces
		many[fmt.Sprintf("%04d", i)] = 1
	}
	for name, changes := range map[string]object{
		"texts of 1,024 characters": {"key": text, "id": text, "target": text, "parent": text, "reference": text},
		"a request of 64 KiB":       {"request": fill(65536)},
		"metadata of 64 KiB":        {"metadata": fill(65536)},
		"many fields":               {"request": many},
		"the largest amount":        {"amount": int64(9223372036854775807)},
	} {
		if got := a.open(changes); got["verdict"] != "new" {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := a.row(text, "key"); got != text {
		t.Errorf("the key is kept as %q", got)
	}
}
