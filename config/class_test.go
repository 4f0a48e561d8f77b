package config

import "testing"

// Those that can never work stand in testdata/bad.
func TestARepeatThatKeysOrTheClassMakeSafeIsAccepted(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{
		"irreversible under a key":                          "class: irreversible, repeat: same_key",
		"irreversible without repeats and without keys":     "class: irreversible, key_lifetime: 0s",
		"reversible under a key, released when absent":      "class: reversible, on_absent: release",
		"idempotent without keys":                           "class: idempotent, repeat: same_key, key_lifetime: 0s, marks: [reference]",
		"a read, whatever the key":                          "class: read, repeat: same_key, marks: [reference], key_lifetime: 10m",
		"irreversible, released when absent, under its key": "class: irreversible, repeat: same_key, on_absent: release",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mustParse(t, "sources:\n  - {name: s, kind: stripe, settings: {api_key: \"${KEY}\"}}\n"+
				"actions:\n  a: {source: s, effect: refund, "+says+"}\n")
		})
	}
}
