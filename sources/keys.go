package sources

import "github.com/seed-1c4f4dc2/reconciler/recon"

// KeySettings say what an idempotency key is worth at a provider.
type KeySettings struct {
	Lifetime recon.Duration `yaml:"lifetime" json:"lifetime"`
	// RepeatAnswers: a repeat under the same key gives the first one's answer.
	RepeatAnswers bool `yaml:"repeat_answers" json:"repeat_answers"`
	// HoldsOne: one key holds the provider to one effect.
	HoldsOne bool `yaml:"holds_one" json:"holds_one"`
}

// Faults reports what is wrong with the settings under the key keys.
func (k KeySettings) Faults() []recon.Fault {
	if k.Lifetime == 0 && (k.RepeatAnswers || k.HoldsOne) {
		return []recon.Fault{{Path: "keys.lifetime", Problem: "is missing; write for how long the provider keeps a key"}}
	}
	return nil
}
