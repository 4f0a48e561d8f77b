package reports

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

//go:embed html
var htmlFiles embed.FS

// shownOnPage is how many findings a page shows with both sides.
const shownOnPage = 500

// NightlyHTML writes a report as one page that needs nothing besides itself: no script, no
// font and no image from elsewhere.
func NightlyHTML(w io.Writer, n *Nightly) error {
	return n.execute(w, "report.html", n, template.FuncMap{
		"when":     n.when,
		"hours":    n.hours,
		"standing": func() string { return string(n.Standing()) },
		"verdict":  n.verdict, "ending": n.ending, "gaps": n.gapLists, "cards": n.cards,
		"num": number, "sum": n.sumText, "fee": func(l FeeLine) string { return feeText(n, l) },
		"fees": n.knownFees, "feesNotKnown": n.feesNotKnown,
		"done": func(l OperationLine) Sum { return l.States[recon.Succeeded] }, "completed": func(l EffectLine) Sum { return l.Statuses[recon.Completed] },
		"noun":   func(s any) string { return recon.Noun(fmt.Sprint(s)) },
		"states": func() []recon.State { return recon.States }, "statuses": func() []recon.EffectStatus { return statuses },
		"stateSum": n.stateSum, "statusSum": n.statusSum, "unownedSum": n.unownedSum,
		"operationBars": n.operationBars, "ageBars": n.ageBars, "findingBars": n.findingBars,
		"stateLegend": func() []barPart { return stateParts }, "openLegend": func() []barPart { return openParts },
		"findingLegend": func() []barPart { return findingParts },
		"classTable":    n.classTable, "classes": classesText, "ages": func() []string { return AgeNames }, "truth": n.truthText,
		"shown":        func() []NightlyFinding { return n.Findings[:min(len(n.Findings), shownOnPage)] },
		"moreFindings": func() int { return max(len(n.Findings)-shownOnPage, 0) },
		"open":         NightlyFinding.open, "state": NightlyFinding.stateText, "differs": NightlyFinding.differs,
		"money": func(m *money) string { return m.recon().Text(n.Exponents) },
		"kind":  func(k recon.FindingKind) string { return upper(k.Text()) }, "advice": recon.FindingKind.Advice,
		"ours": func(s OurSide) string { return s.text(n) }, "theirs": func(s TheirSide) string { return s.text(n) },
		"page": n.pages(), "found": n.findingsText, "policy": NightlyPolicy.text,
		"chains": n.chainsText,
		"files": func() []string {
			return []string{n.Base() + ".json", n.Base() + ".txt", n.Base() + "-totals.csv", n.Base() + "-findings.csv"}
		},
	})
}

// storyHTML writes the page of one operation.
func storyHTML(w io.Writer, n *Nightly, s StoryPage) error {
	shown := map[string]bool{}
	for _, f := range n.Findings[:min(len(n.Findings), shownOnPage)] {
		shown[f.ID] = true
	}
	return n.execute(w, "story.html", s, template.FuncMap{
		"report": func() string { return n.Base() + ".html" },
		"day":    func() string { return n.Window.Name },
		"asOf":   func() string { return n.when(n.AsOf) },
		"findingLink": func(id string) string {
			if !shown[id] {
				return ""
			}
			return n.Base() + ".html#finding-" + id
		},
	})
}

// execute runs a page; both pages share the head and the style.
func (n *Nightly) execute(w io.Writer, name string, data any, funcs template.FuncMap) error {
	style, err := htmlFiles.ReadFile("html/style.css")
	if err != nil {
		return err
	}
	funcs["style"] = func() template.CSS { return template.CSS(style) }
	head, err := htmlFiles.ReadFile("html/head.html")
	if err != nil {
		return err
	}
	body, err := htmlFiles.ReadFile("html/" + name)
	if err != nil {
		return err
	}
	t, err := template.New(name).Funcs(funcs).Parse(string(head) + string(body))
	if err != nil {
		return err
	}
	var page bytes.Buffer
	if err := t.Execute(&page, data); err != nil {
		return err
	}
	_, err = w.Write(printable(page.Bytes()))
	return err
}

// printable marks what cannot be seen or turns the direction of writing, line by line, so
// that nobody reads one id as another.
func printable(page []byte) []byte {
	var b bytes.Buffer
	for line := range bytes.Lines(page) {
		text, whole := bytes.CutSuffix(line, []byte("\n"))
		b.WriteString(recon.Printable(string(text)))
		if whole {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// differs lists the values that differ. With nothing of ours beside it nothing differs.
func (f NightlyFinding) differs() []string {
	var list []string
	for _, d := range f.Observed {
		if d.Ours != "" || len(f.Ours) > 0 {
			list = append(list, fmt.Sprintf("%s: ours %s, theirs %s", recon.Noun(d.Field), orNone(d.Ours), orNone(d.Theirs)))
		}
	}
	return list
}

// pages gives the file of an operation's page; empty: it has none.
func (n *Nightly) pages() func(recon.OperationID) string {
	files := map[recon.OperationID]string{}
	for _, s := range n.Stories {
		files[s.ID] = n.storyFile(s)
	}
	return func(id recon.OperationID) string { return files[id] }
}

type gapList struct {
	Lead string
	List []string
}

func (n *Nightly) gapLists() []gapList {
	var lists []gapList
	for _, part := range []struct {
		lead string
		list []NightlyGap
	}{{"Not audited", n.NotAudited}, {"Not seen", n.Unseen}, {"Audit failed", n.Failed}, {"Cannot be asked now", n.Down}} {
		l := gapList{Lead: part.lead}
		for _, g := range part.list {
			l.List = append(l.List, n.gapText(g))
		}
		if len(l.List) > 0 {
			lists = append(lists, l)
		}
	}
	return lists
}

type card struct{ Value, Label, Class string }

func (n *Nightly) cards() []card {
	open := 0
	for _, l := range n.Open {
		open += l.Count
	}
	mark := func(n int, class string) string {
		if n == 0 {
			return ""
		}
		return class
	}
	cards := []card{
		{number(n.Totals.Operations), "operations opened", ""},
		{number(n.Totals.Effects), "effects made", ""},
		{number(n.openFindings()), "findings open", mark(n.openFindings(), "bad")},
		{number(open), "operations open", mark(open, "warn")},
	}
	if n.Truth.Closed == 0 {
		return cards
	}
	return append(cards, card{secondsText(n.Truth.Median), "half of all doubts ended within", ""}, card{secondsText(n.Truth.P99), "99 % of them within", ""})
}

func (n *Nightly) stateSum(s recon.State) int {
	all := 0
	for _, l := range n.Operations {
		all += l.States[s].Count
	}
	return all
}

func (n *Nightly) statusSum(s recon.EffectStatus) int {
	all := 0
	for _, l := range n.Effects {
		all += l.Statuses[s].Count
	}
	return all
}

func (n *Nightly) unownedSum() int {
	all := 0
	for _, l := range n.Effects {
		all += l.Unowned.Count
	}
	return all
}

type classRow struct{ Class, Operations, Effects string }

type classSums struct {
	Rows                []classRow
	Operations, Effects string
}

// classTable lists the classes that hold something; nil where classes cannot be added.
func (n *Nightly) classTable() *classSums {
	if n.Classes == nil {
		return nil
	}
	both := map[string]int{}
	for _, side := range []map[string]int{n.Classes.Operations, n.Classes.Effects} {
		for k, c := range side {
			both[k] += c
		}
	}
	t := classSums{Operations: number(total(n.Classes.Operations)), Effects: number(total(n.Classes.Effects))}
	for _, k := range classOrder(both) {
		if both[k] > 0 {
			t.Rows = append(t.Rows, classRow{recon.Noun(k), cell(n.Classes.Operations, k), cell(n.Classes.Effects, k)})
		}
	}
	return &t
}

func (n *Nightly) operationBars() []bar {
	var bars []bar
	most := 0
	for _, l := range n.Operations {
		most = max(most, l.All.Count)
	}
	for _, l := range n.Operations {
		label := l.Action
		if l.Currency != nil {
			label += ", " + *l.Currency
		}
		b := newBar(label, most)
		for _, part := range stateParts {
			c := 0
			for _, s := range part.states {
				c += l.States[s].Count
			}
			b.add(part, c)
		}
		bars = append(bars, b)
	}
	return bars
}

func (n *Nightly) ageBars() []bar {
	ages := make([]map[recon.State]int, len(AgeNames))
	most := 0
	for i := range ages {
		ages[i] = map[recon.State]int{}
		all := 0
		for _, l := range n.Open {
			ages[i][l.State] += l.Buckets[i]
			all += l.Buckets[i]
		}
		most = max(most, all)
	}
	var bars []bar
	for i, name := range AgeNames {
		b := newBar(name, most)
		for _, part := range openParts {
			c := 0
			for _, s := range part.states {
				c += ages[i][s]
			}
			b.add(part, c)
		}
		bars = append(bars, b)
	}
	return bars
}

func (n *Nightly) findingBars() []bar {
	kinds, open := map[recon.FindingKind]int{}, map[recon.FindingKind]int{}
	for _, f := range n.Findings {
		kinds[f.Kind]++
		if f.open() {
			open[f.Kind]++
		}
	}
	most := slices.Max(slices.Collect(maps.Values(kinds)))
	var bars []bar
	for _, k := range recon.FindingKinds {
		if kinds[k] > 0 {
			b := newBar(recon.Noun(string(k)), most)
			b.add(findingParts[0], open[k])
			b.add(findingParts[1], kinds[k]-open[k])
			bars = append(bars, b)
		}
	}
	return bars
}
