package ledger

import (
	"encoding/json"
	"fmt"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// lateJoin adds the answers of an operation that came when their lease was over, as one
// JSON array. It is part of the statements that read cases.
const lateJoin = `
LEFT JOIN LATERAL (
	SELECT json_agg(b.body ORDER BY j.seq) AS answers
	FROM reconciler.journal j, LATERAL (SELECT j.body::json AS body) b
	WHERE j.tenant = $1 AND j.operation_id = o.operation_id AND j.kind = 'attempt_finished' AND b.body ->> 'applied' = 'false'
) late ON o.attempts > 0`

// lateAnswers reads what lateJoin gives.
func lateAnswers(answers []byte) ([]recon.AttemptReport, error) {
	if answers == nil {
		return nil, nil
	}
	var entries []struct {
		Class     recon.AttemptClass `json:"class"`
		EffectID  string             `json:"effect_id"`
		ErrorCode string             `json:"error_code"`
		RequestID string             `json:"request_id"`
	}
	if err := json.Unmarshal(answers, &entries); err != nil {
		return nil, fmt.Errorf("late answers: %w", err)
	}
	reports := make([]recon.AttemptReport, len(entries))
	for i, e := range entries {
		reports[i] = recon.AttemptReport{Class: e.Class, EffectID: e.EffectID, ErrorCode: e.ErrorCode, RequestID: e.RequestID}
	}
	return reports, nil
}
