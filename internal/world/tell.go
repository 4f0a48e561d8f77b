package world

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Tell writes the story of a simulation for somebody who has five minutes: what the
// agent was told, what was true, what the ledger concluded from which evidence, and
// what went to people.
func (v Verdict) Tell(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "A shop's agent made %d refunds in two simulated days, over a network that loses answers.\n", v.Operations)
	fmt.Fprintf(out, "One of each kind of trouble:\n")
	for n, t := range v.Tales {
		fmt.Fprintf(out, "\n%d. %s\n", n+1, strings.ToUpper(t.Fate[:1])+t.Fate[1:])
		t.tell(out)
	}
	v.sum(out)
	return out.Flush()
}

// tell tells one operation in a few lines.
func (t Tale) tell(out io.Writer) {
	line := func(label, text string) { fmt.Fprintf(out, "   %-11s%s\n", label, text) }
	line("asked", clockOf(t.Story.Operation.CreatedAt)+" "+t.Story.Title()+", operation "+string(t.Story.Operation.ID))
	for n, told := range t.Told {
		line(or(map[bool]string{true: "agent"}[n == 0], ""), told)
	}
	line("truth", t.truth())
	for n, said := range t.conclusions() {
		line(or(map[bool]string{true: "ledger"}[n == 0], ""), said)
	}
	line("people", t.people())
}

// truth says what the provider's own books hold.
func (t Tale) truth() string {
	if len(t.Truth) == 0 {
		return "the provider never made it"
	}
	var all []string
	for _, r := range t.Truth {
		amount := recon.Money{Minor: r.Amount, Currency: strings.ToUpper(r.Currency)}
		all = append(all, fmt.Sprintf("%s of %s, made %s, now %s", r.ID, amount.Text(nil), clockOf(r.Created), r.Status))
	}
	return strings.Join(all, "; ")
}

// maxConclusions bounds what one tale tells; a bouncing operation has dozens.
const maxConclusions = 4

// conclusions lists the ledger's decisions that changed something, each with the look
// that decided it. Of many it tells the first ones and the last.
func (t Tale) conclusions() []string {
	looks := map[string]recon.Look{}
	for _, l := range t.Story.Looks {
		looks[l.ID] = l
	}
	var said [][]string
	var last recon.State // that a decision left
	for _, e := range t.Story.Journal {
		var body struct {
			From, To recon.State
			Reason   string
			LookIDs  []string `json:"look_ids"`
		}
		if e.Kind != recon.EntryDecision || json.Unmarshal(e.Body, &body) != nil {
			continue
		}
		last = body.To
		text := clockOf(e.At) + " "
		if body.From != body.To {
			text += string(body.From) + " → " + string(body.To) + ". "
		}
		lines := []string{text + body.Reason}
		if n := len(body.LookIDs); n > 0 && body.From != body.To {
			if l, ok := looks[body.LookIDs[n-1]]; ok {
				lines = append(lines, fmt.Sprintf("evidence: %s %s: %s", clockOf(l.At), t.Story.Question(l), t.Story.Answer(l)))
			}
		}
		said = append(said, lines)
	}
	if state := t.Story.Operation.State; state != last {
		said = append(said, []string{string(state) + ", by the agent's own answer"})
	}
	if over := len(said) - maxConclusions; over > 0 {
		more := []string{fmt.Sprintf("… %d more of the same kind …", over+1)}
		said = slices.Concat(said[:maxConclusions-2], [][]string{more}, said[len(said)-1:])
	}
	return slices.Concat(said...)
}

// people says who was told of it.
func (t Tale) people() string {
	var told []string
	for _, f := range t.Story.Findings {
		text := string(f.Kind) + ": " + f.Kind.Text()
		if f.State == recon.FindingEnded {
			text += " (ended by itself)"
		}
		told = append(told, text)
	}
	if len(told) == 0 {
		return "nobody had to be told"
	}
	return strings.Join(told, "; ")
}

// shownPosts is how many messages the story shows.
const shownPosts = 4

// sum writes the totals and what to do next.
func (v Verdict) sum(out io.Writer) {
	fmt.Fprintf(out, "\nIn all: %d refunds asked for, %d made. Of %d the agent had no definite answer;\n",
		v.Operations, v.Effects, v.SentUnknown)
	fmt.Fprintf(out, "%d of those were closed by evidence, %d were put before people. %s.\n",
		v.ClosedByEvidence, v.Escalated, counts("Findings", v.Findings))
	fmt.Fprintf(out, "The provider was asked %d times in %d simulated hours. Wrong conclusions: %d.\n",
		v.ProviderCalls, v.SimulatedHours, v.Wrong)
	for _, f := range v.Faults {
		fmt.Fprintf(out, "  WRONG %s\n", f)
	}
	waiting := slices.DeleteFunc(slices.Clone(v.Posts), func(p string) bool { return strings.HasPrefix(p, "Ended: ") })
	fmt.Fprintf(out, "\n%d messages would have gone out, and are edited when they end. Waiting for a person: %d%s\n",
		v.Messages, len(waiting), or(map[bool]string{true: ", such as"}[len(waiting) > 0], "."))
	for _, p := range waiting[:min(shownPosts, len(waiting))] {
		fmt.Fprintf(out, "  | %s\n", strings.ReplaceAll(strings.TrimSpace(p), "\n", "\n  | "))
	}
}

func counts(label string, kinds map[recon.FindingKind]int) string {
	var all []string
	for _, k := range recon.FindingKinds {
		if n := kinds[k]; n > 0 {
			all = append(all, fmt.Sprintf("%d %s", n, k))
		}
	}
	if len(all) == 0 {
		return label + ": none"
	}
	return label + ": " + strings.Join(slices.Clip(all), ", ")
}

func clockOf(t time.Time) string { return t.UTC().Format("Mon 15:04:05") }
