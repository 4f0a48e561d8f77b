package sweep

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// listed is a provider that holds effects and lists them page by page, newest first, as
// its contract says.
type listed struct {
	name    recon.SourceName
	sheet   recon.Sheet
	places  []recon.Account // also those that are none of ours
	effects []recon.Effect
	page    int
	fail    func(page int) string // a fault, by the number of the page asked for; nil: none
	asked   int
}

var _ sources.Lister = (*listed)(nil)

func (s *listed) Name() recon.SourceName      { return s.name }
func (s *listed) Sheet() recon.Sheet          { return s.sheet }
func (s *listed) Probe(context.Context) error { return nil }

func (s *listed) Ask(_ context.Context, batch []sources.Question, now func() time.Time) (sources.Answer, error) {
	var a sources.Answer
	for range batch {
		a.Looks = append(a.Looks, recon.Look{ID: uuid.NewString(), Source: s.name, Method: recon.ByID, Outcome: recon.Blind, Fault: string(sources.Unsupported), At: now()})
	}
	return a, nil
}

func (s *listed) Lists(kinds []string) []sources.List {
	var lists []sources.List
	for _, k := range kinds {
		for _, a := range s.places {
			lists = append(lists, sources.List{Kind: k, Account: a.Account, Mode: a.Mode})
		}
	}
	return lists
}

func (s *listed) Page(_ context.Context, l sources.List, w recon.Window, cursor string, now func() time.Time) (sources.Page, error) {
	s.asked++
	look := recon.Look{
		ID: uuid.NewString(), Source: s.name, Method: recon.ByList, Outcome: recon.Absent, Complete: true, Kind: l.Kind,
		Account: l.Account, Mode: l.Mode, Window: w, At: now(), Calls: 1,
	}
	if s.fail != nil {
		if fault := s.fail(s.asked); fault != "" {
			look.Outcome, look.Complete, look.Fault = recon.Blind, false, fault
			return sources.Page{Look: look, Next: cursor}, nil
		}
	}
	var here []recon.Effect
	for _, e := range s.effects {
		if e.Kind == l.Kind && e.Account == l.Account && e.Mode == l.Mode && w.Contains(e.CreatedAt) && e.CreatedAt.Before(now()) {
			here = append(here, e)
		}
	}
	slices.SortFunc(here, func(a, b recon.Effect) int {
		if c := b.CreatedAt.Compare(a.CreatedAt); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	from, _ := strconv.Atoi(cursor)
	to := min(from+s.page, len(here))
	p := sources.Page{Look: look}
	for _, e := range here[min(from, to):to] {
		p.Effects = append(p.Effects, e)
		p.Look.Found = append(p.Look.Found, e.Identity())
		p.Look.Outcome = recon.Found
	}
	if to < len(here) {
		p.Next = strconv.Itoa(to)
	}
	return p, nil
}
