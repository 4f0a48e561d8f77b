package rules

import (
	"fmt"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// conflict: the ledger says failed, and the provider holds an equal effect by proof.
// The provider is right. What was told to people and what they did since may be wrong,
// so the correction never happens in silence.
var conflict = rule{"conflict", func(v *view) (conclusion, bool) {
	if v.state() != recon.Failed || len(v.equal) == 0 {
		return conclusion{}, false
	}
	main, to := v.kept(), recon.Unknown
	if len(v.done) > 0 {
		to = recon.Succeeded
	}
	reason := fmt.Sprintf("The record said failed, and the %s is at the provider: %s, found %s.", v.what(), v.tell(v.live), how(main.match))
	findings := []recon.Finding{v.conflictFinding(reason)}
	if v.copies > 1 {
		findings = append(findings, v.duplicateFinding(main))
	}
	return conclusion{to: to, main: main, reason: reason, findings: findings}, true
}}

func (v *view) conflictFinding(reason string) recon.Finding {
	f := v.finding(recon.FindConflict, reason, v.live)
	for _, p := range v.live {
		f.Observed = append(f.Observed, recon.Difference{Field: "state", Ours: string(recon.Failed), Theirs: string(p.effect.Status)})
	}
	return f
}
