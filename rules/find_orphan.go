package rules

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Orphan tells of an effect that no operation explains: [UnlinkedClass] has said so.
// Hints are the suggestions of matchers about it. It is never attached to one of them
// by itself: amount and time are not proof.
func Orphan(e recon.Effect, hints []recon.Match) recon.Finding {
	return recon.Finding{
		Kind: recon.FindOrphan, Certainty: recon.Proof, Source: e.Source, Operations: []recon.OperationID{},
		Effects: []recon.EffectRef{e.Ref()}, Money: e.Money, Reason: orphanReason(e, hints),
		Observed: []recon.Difference{{Field: "status", Theirs: string(e.Status)}},
	}
}

func orphanReason(e recon.Effect, hints []recon.Match) string {
	s := "A " + recon.Noun(e.Kind)
	if !e.Money.IsZero() {
		s += " of " + e.Money.Text(nil)
	}
	if e.Parent != "" {
		s += " under " + e.Parent
	}
	s += fmt.Sprintf(" (%s) was made at %s", e.Status.Text(), recon.TimeText(e.CreatedAt, nil))
	if e.CreatedBy != "" {
		s += " by " + e.CreatedBy
	}
	if r := strings.TrimSpace(e.Reference); r != "" {
		s += fmt.Sprintf(", names %s, which is no operation of ours,", visible(r))
	}
	s += " and no operation explains it"
	var could []string
	for _, m := range hints {
		could = append(could, fmt.Sprintf("%s (%s)", m.Operation, how(m)))
	}
	if len(could) > 0 {
		s += "; not proven, but it could be that of " + strings.Join(could, ", ")
	}
	return s + "."
}

// visible quotes a text that holds characters which nobody sees, since it looks like
// another one on every screen.
func visible(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		return strconv.QuoteToASCII(s) + " (with characters that are not seen)"
	}
	return s
}
