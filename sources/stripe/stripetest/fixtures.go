package stripetest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
)

// fixturesJSON holds example objects of stripe/openapi (fixtures3.json, MIT licence,
// copyright Stripe), API version dahlia. They give each object the fields that this
// package has nothing to say about.
//
//go:embed fixtures.json
var fixturesJSON []byte

// fixtures are example objects by kind. They are shared and never changed: like copies
// the first level, and nested values are replaced, not edited.
type fixtures map[string]map[string]any

func readFixtures() (fixtures, error) {
	var f fixtures
	if err := json.Unmarshal(fixturesJSON, &f); err != nil {
		return nil, fmt.Errorf("stripetest: read fixtures.json: %w", err)
	}
	return f, nil
}

// like gives a copy of the example with the fields replaced.
func (f fixtures) like(name string, fields map[string]any) map[string]any {
	example := maps.Clone(f[name])
	maps.Copy(example, fields)
	return example
}

// orNull gives JSON null for an empty text, as the provider writes absent ids.
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// texts gives metadata as an object also where there is none.
func texts(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}
