package recon

import "encoding/json"

// AttemptReport is what a sender knows after one attempt: the answer of
// finish_attempt's input that is about the provider.
type AttemptReport struct {
	Class     AttemptClass    // empty counts as indeterminate
	EffectID  string          // the provider's id of what was made
	Result    json.RawMessage // what may be told to a repeat; the policy's result_fields narrow it
	ErrorCode string          // a word, never the provider's own sentence, which may quote what was sent
	RequestID string
}
