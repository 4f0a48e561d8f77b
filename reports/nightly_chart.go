package reports

import (
	"fmt"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// barLength is the length of the longest bar of a chart.
const barLength = 1000

// bar is one bar of a chart, in parts.
type bar struct {
	Label, Number, Said string
	Parts               []drawn
	most, length, count int
}

// barPart is what a part of a bar stands for.
type barPart struct {
	Class, Label string
	states       []recon.State
}

// drawn is a part as it is drawn.
type drawn struct {
	Class, Said string
	X, W        int
}

var (
	stateParts = []barPart{
		{"good", "succeeded", []recon.State{recon.Succeeded}},
		{"plain", "failed: it did not happen", []recon.State{recon.Failed}},
		{"warn", "open", []recon.State{recon.Pending, recon.InProgress, recon.Unknown}},
		{"bad", "a person must decide", []recon.State{recon.ManualReview}},
	}
	openParts = []barPart{
		{"plain", "pending or in progress", []recon.State{recon.Pending, recon.InProgress}},
		{"warn", "unknown", []recon.State{recon.Unknown}},
		{"bad", "a person must decide", []recon.State{recon.ManualReview}},
	}
	findingParts = []barPart{{Class: "bad", Label: "open"}, {Class: "plain", Label: "over"}}
)

// newBar begins a bar of a chart whose longest one stands for most.
func newBar(label string, most int) bar {
	return bar{Label: label, Number: "0", Said: "none", most: most}
}

// add puts a part behind the ones before. What exists is drawn, however little it is.
func (b *bar) add(p barPart, n int) {
	if n == 0 {
		return
	}
	width := min(max(n*barLength/b.most, 4), barLength-b.length)
	said := fmt.Sprintf("%s %s", number(n), p.Label)
	b.Parts = append(b.Parts, drawn{p.Class, said, b.length, width})
	b.length += width
	b.count += n
	b.Number = number(b.count)
	b.Said = strings.TrimPrefix(b.Said+", "+said, "none, ")
}
