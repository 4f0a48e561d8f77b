package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatARunningProcessCannotChange(t *testing.T) {
	t.Parallel()
	const text = `
database: {url: "postgres://db/r"}
sources:
  - {name: stripe-main, kind: stripe, settings: {account: acct_1, api_key: "${KEY}", marker: op_id, webhook: {secrets: ["${KEY}"]}}}
  - {name: giro, kind: files, settings: {account: a, format: jsonl}}
actions:
  refund.create: {source: stripe-main, effect: refund, class: irreversible}
`
	c := mustParse(t, text)
	for change, test := range map[string]struct {
		from, to string
		want     []string
	}{
		"nothing":         {"", "", nil},
		"a policy":        {"class: irreversible", "class: irreversible, check_after: 45s", nil},
		"the schedule":    {"database:", "schedule: {sweep: off}\ndatabase:", nil},
		"the ladders":     {"database:", "escalation: {digest: {schedule: off}}\ndatabase:", nil},
		"the zone":        {"database:", "zone: Europe/Oslo\ndatabase:", nil},
		"tenant":          {"database:", "tenant: other\ndatabase:", []string{"tenant"}},
		"the database":    {"db/r", "db/s", []string{"database"}},
		"a listener":      {"database:", "listen: {public: \":9\"}\ndatabase:", []string{"listen"}},
		"a setting":       {"marker: op_id", "marker: other", []string{"sources.stripe-main"}},
		"a source goes":   {"  - {name: giro, kind: files, settings: {account: a, format: jsonl}}\n", "", []string{"sources.giro"}},
		"a source's name": {"name: giro", "name: bank", []string{"sources.giro", "sources.bank"}},
	} {
		if diff := cmp.Diff(test.want, c.Fixed(mustParse(t, strings.Replace(text, test.from, test.to, 1)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", change, diff)
		}
	}
	rolled, err := Parse("test.yaml", []byte(text), env("KEY", "sk_live_rolled"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"sources.stripe-main"}, c.Fixed(rolled)); diff != "" {
		t.Errorf("a rolled key (-want +got):\n%s", diff)
	}
}
