package large

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// journalLine is what the judge reads of a line of a journal.
type journalLine struct {
	recon.Entry
	By       string             `json:"by"`
	From     recon.State        `json:"from"`
	To       recon.State        `json:"to"`
	Applied  bool               `json:"applied"`
	Class    recon.AttemptClass `json:"class"`
	Verb     recon.Verb         `json:"verb"`
	Rule     string             `json:"rule"`
	EffectID string             `json:"effect_id"`
	LookIDs  []string           `json:"look_ids"`
}

// closes reports whether the line closed its operation.
func (e journalLine) closes() bool {
	return e.From != e.To && (e.To == recon.Succeeded || e.To == recon.Failed)
}

// closingsRest holds every closing that ever was against its journal: it rests on a look, on
// an attempt's definite answer, on a person or on what was imported, which the journal names.
func closingsRest(w *World, a books) (wrong []string) {
	for id, s := range a.stories {
		for _, why := range w.unfounded(s) {
			wrong = append(wrong, fmt.Sprintf("%s (%s) %s", id, w.intents[id].fate.name, why))
		}
	}
	return wrong
}

// unfounded says what in an operation's journal does not rest on anything, or is not told.
func (w *World) unfounded(s recon.Story) (wrong []string) {
	looks := map[string]recon.Look{}
	for _, l := range s.Looks {
		looks[l.ID] = l
	}
	var state recon.State
	effect := "" // that the operation had at each line
	for _, line := range s.Journal {
		e := journalLine{Entry: line}
		if err := json.Unmarshal(line.Body, &e); err != nil {
			wrong = append(wrong, fmt.Sprintf("has the line %d, which is no JSON: %v", line.Seq, err))
			continue
		}
		if e.To == "" {
			continue
		}
		if e.From != state {
			wrong = append(wrong, fmt.Sprintf("was %s, and its line %d begins with %s", state, e.Seq, e.From))
		}
		proposed := e.Kind == recon.EntryPerson && e.From == e.To // by one of two
		if state = e.To; e.EffectID != "" && !proposed && (e.Kind != recon.EntryFinished || e.Applied) {
			effect = e.EffectID
		}
		if why := w.restsOn(s.Operation.ID, e, looks, effect); e.closes() && why != "" {
			wrong = append(wrong, fmt.Sprintf("became %s at %s by line %d (%s %s): %s", e.To, e.At.Format(time.RFC3339), e.Seq, e.Kind, e.Rule, why))
		}
	}
	if state != s.Operation.State {
		wrong = append(wrong, fmt.Sprintf("is %s, and its journal ends with %s", s.Operation.State, state))
	}
	return wrong
}

// restsOn says what a closing line lacks; empty: nothing.
func (w *World) restsOn(op recon.OperationID, e journalLine, looks map[string]recon.Look, effect string) string {
	switch e.Kind {
	case recon.EntryOpened:
		_, adopted := w.adopted[op]
		if e.By == "import" && w.intents[op].fate.record.state == e.To || adopted && staff(e.By) {
			return ""
		}
		return "neither an import nor a person says so: " + e.By
	case recon.EntryFinished:
		definite := map[recon.AttemptClass]recon.State{recon.ClassSucceeded: recon.Succeeded, recon.ClassRefused: recon.Failed}
		if e.Applied && definite[e.Class] == e.To && w.sent[op] > 0 && (e.To == recon.Failed || e.EffectID != "") {
			return ""
		}
		return fmt.Sprintf("%s is no definite answer to one of %d requests", e.Class, w.sent[op])
	case recon.EntryPerson:
		if staff(e.By) && e.Verb.Settles() {
			return ""
		}
		return fmt.Sprintf("%s by %q settles nothing", e.Verb, e.By)
	case recon.EntryDecision:
		return supports(e, looks, effect)
	}
	return "such a line closes nothing"
}

// supports says what the looks lack that a decision names.
func supports(e journalLine, looks map[string]recon.Look, effect string) string {
	supported := false
	for _, id := range e.LookIDs {
		l, kept := looks[id]
		saw := slices.ContainsFunc(l.Found, func(i recon.EffectIdentity) bool { return i.ID == effect })
		switch {
		case !kept:
			return "the look " + id + " is not there"
		case l.Outcome == recon.Blind && !saw:
			return "the look " + id + " was blind"
		case l.At.After(e.At):
			return "the look " + id + " is younger"
		}
		// Where a look at all that could be there found nothing of ours, that it came to nothing is sure.
		supported = supported || saw || e.To == recon.Failed && l.Complete
	}
	if !supported {
		return fmt.Sprintf("no look saw %s: %s", effect, strings.Join(e.LookIDs, ", "))
	}
	return ""
}

// staff reports whether somebody of that name works for the company.
func staff(name string) bool { _, works := members[name]; return works }
