package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// footing is what a lost answer of one action rests on.
type footing struct {
	Action    string            `json:"action"`
	Source    recon.SourceName  `json:"source"`
	Class     recon.ActionClass `json:"class"`
	Situation situation         `json:"situation"`
	Keys      string            `json:"keys"`
	Lookup    string            `json:"lookup"`
	NotFound  string            `json:"not_found"`
	Witness   string            `json:"witness,omitempty"`
}

// situation is what an action has against doing things twice.
type situation string

const (
	withKeys     situation = "keys"           // the provider keeps idempotency keys, and is given them
	withOwnWrite situation = "own_write_path" // the change commits with its record
	withNeither  situation = "neither"
	withNoNeed   situation = "needs_none" // a second one does no harm
)

func situationOf(p recon.Policy, s recon.Sheet) situation {
	switch {
	case s.OwnWrite:
		return withOwnWrite
	case p.NeedsNoKey():
		return withNoNeed
	case p.KeyLifetime > 0 && slices.Contains(p.Marks, recon.MarkKey):
		return withKeys
	}
	return withNeither
}

// footingsOf gives what every action rests on, by the actions' names.
func footingsOf(c *config.Config) []footing {
	list := []footing{}
	for _, p := range c.Policies {
		s, _ := c.Source(p.Source) // a configuration that loads names only sources that it has
		list = append(list, footingOf(p, s.Sheet))
	}
	return list
}

func (f footing) String() string {
	s := fmt.Sprintf("%s at %s, %s: %s; %s; %s", f.Action, f.Source, f.Class, f.Keys, f.Lookup, f.NotFound)
	if f.Witness != "" {
		s += "; held against the witness " + f.Witness
	}
	return s
}

// footingOf says what keeps the action from happening twice, how a lost answer is found
// out, and what it is worth when nothing is found.
func footingOf(p recon.Policy, s recon.Sheet) footing {
	f := footing{Action: p.Action, Source: p.Source, Class: p.Class, Situation: situationOf(p, s), Witness: p.Witness}
	switch {
	case f.Situation == withOwnWrite:
		f.Keys = "own write path, so no answer can be lost"
	case f.Situation == withNoNeed:
		f.Keys = "needs no key"
	case f.Situation == withKeys:
		f.Keys = fmt.Sprintf("keys (%s)", p.KeyLifetime)
	case p.KeyLifetime == 0:
		f.Keys = "neither keys nor own write path, so it is never sent again after a lost answer"
	default:
		f.Keys = "neither own write path nor keys, for none is sent (marks), so it is never sent again after a lost answer"
	}
	if p.Repeat == recon.RepeatNever && f.Situation != withOwnWrite && f.Situation != withNeither {
		f.Keys += ", repeat never"
	}
	var ways, proof []string
	for _, ability := range s.Abilities {
		if !ability.Finds(p.Effect) {
			continue
		}
		if len(ability.NeedsMark) > 0 && !slices.ContainsFunc(ability.NeedsMark, func(m recon.Mark) bool { return slices.Contains(p.Marks, m) }) {
			continue // what it looks for is not sent
		}
		way := strings.ReplaceAll(strings.TrimPrefix(string(ability.Method), "by_"), "_", " ")
		ways = append(ways, way)
		if ability.Consistency == recon.Strong {
			proof = append(proof, fmt.Sprintf("%s (after %s)", way, ability.Lag))
		}
	}
	f.Lookup = "looked up by " + strings.Join(ways, ", ")
	switch {
	case len(ways) == 0:
		f.Lookup = "cannot be looked up"
	case !s.Finds(p):
		// A lost answer leaves no id.
		f.Lookup, proof = "looked up by id alone, which a lost answer does not tell", nil
	}
	if !s.Finds(p) && s.Webhooks {
		f.Lookup += ", but it sends webhooks"
	}
	f.NotFound = fmt.Sprintf("not found by %s counts, %s over %s make absent: %s",
		strings.Join(proof, ", "), count(p.Absence.Looks, "look"), p.Absence.Over, p.OnAbsent)
	if len(proof) == 0 {
		f.NotFound = fmt.Sprintf("not found proves nothing, a person decides after %s at the latest", p.GiveUpAfter)
		if p.Unverifiable == "accepted" && !s.Finds(p) && !s.Webhooks {
			f.NotFound = "unverifiable, which is accepted: a person decides at once"
		}
	}
	return f
}
