package reports

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// StoryPage is the story of one operation in words, as it stood at one moment. The screen
// and the page of a report tell the same.
type StoryPage struct {
	ID       recon.OperationID `json:"operation_id"`
	File     string            `json:"file"` // in the folder of the report
	Title    string            `json:"title"`
	Rows     []StoryRow        `json:"rows"`
	Findings []StoryFinding    `json:"findings"`
	Effects  []string          `json:"effects"`
	Days     []StoryDay        `json:"days"`
	Hidden   int               `json:"hidden"` // entries left out behind the first ones of a long story
}

// StoryRow is a label and what it says.
type StoryRow struct {
	Label string `json:"label"`
	Value string `json:"value"`
}

// StoryFinding is a finding on the operation.
type StoryFinding struct {
	ID   string     `json:"id"`
	Head string     `json:"head"`
	Open bool       `json:"open"`
	Rows []StoryRow `json:"rows"`
}

// StoryDay is what happened on one day of the zone.
type StoryDay struct {
	Day     string       `json:"day"`
	Entries []StoryEntry `json:"entries"`
}

// StoryEntry is one entry of the journal.
type StoryEntry struct {
	Time      string          `json:"time"`
	Kind      recon.EntryKind `json:"kind"`
	Text      string          `json:"text"`
	Looks     []string        `json:"looks,omitempty"`
	MoreLooks int             `json:"more_looks,omitempty"`
}

// NewStoryPage tells a story as it stands at now.
func NewStoryPage(s recon.Story, now time.Time, zone *time.Location) StoryPage {
	p := newPage(now, zone)
	sp := StoryPage{ID: s.Operation.ID, File: storyFile(s.Operation.ID), Title: s.Title(), Findings: []StoryFinding{}, Effects: []string{}}
	for _, r := range p.stateRows(s) {
		if r.Value != "" {
			sp.Rows = append(sp.Rows, r)
		}
	}
	for _, open := range []bool{true, false} {
		for _, f := range s.Findings {
			if f.Open() == open {
				sp.Findings = append(sp.Findings, StoryFinding{f.ID, fmt.Sprintf("%s, %s: %s", f.Kind, state(f), f.Kind.Text()), open, p.findingRows(s, f)})
			}
		}
	}
	for i, e := range s.Effects {
		if i == shownEffects {
			sp.Effects = append(sp.Effects, fmt.Sprintf("and %d more", len(s.Effects)-i))
			break
		}
		sp.Effects = append(sp.Effects, p.effect(s, e))
	}
	sp.Days, sp.Hidden = p.days(s)
	return sp
}

var plainID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,60}$`)

// storyFile names the page of an operation. Ids are any text, and folders may not tell
// upper from lower case.
func storyFile(id recon.OperationID) string {
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(id)))
	if plainID.MatchString(string(id)) {
		return "operation-" + string(id) + "-" + sum[:8] + ".html"
	}
	return "operation-" + sum[:24] + ".html"
}
