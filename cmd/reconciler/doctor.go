package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func newDoctorCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Tell whether the database is safe to record intents in, and what each action rests on", Args: exactly(),
		Long: "Changes nothing and asks no provider. Slack is asked whether the token of each destination serves. Exits 1 when there is a fault; warnings are no failure.",
		RunE: a.verb(a.doctor),
	}
}

// doctorAnswer is what the doctor found.
type doctorAnswer struct {
	OK       bool            `json:"ok"`
	Database string          `json:"database"` // empty: see advice
	Advice   []ledger.Advice `json:"advice"`
	Actions  []footing       `json:"actions"`
}

// footing is what a lost answer of one action rests on.
type footing struct {
	Action   string            `json:"action"`
	Source   recon.SourceName  `json:"source"`
	Class    recon.ActionClass `json:"class"`
	Keys     string            `json:"keys"`
	Lookup   string            `json:"lookup"`
	NotFound string            `json:"not_found"`
}

func (a *app) doctor(ctx context.Context, _ []string) error {
	c, err := a.needConfig("doctor")
	if err != nil {
		return err
	}
	answer := doctorAnswer{Advice: []ledger.Advice{}, Actions: []footing{}}
	for _, p := range c.Policies {
		s, _ := c.Source(p.Source) // a configuration that loads names only sources that it has
		answer.Actions = append(answer.Actions, footingOf(p, s.Sheet))
	}
	if err := a.examine(ctx, c, &answer); err != nil {
		return err
	}
	answer.Advice = append(answer.Advice, destinationAdvice(ctx, c)...)
	faults := 0
	for _, d := range answer.Advice {
		if d.Level == ledger.Faulty {
			faults++
		}
	}
	answer.OK = faults == 0
	if err := a.print(answer, answer.text); err != nil {
		return err
	}
	if faults > 0 {
		return fmt.Errorf("doctor found %s", count(faults, "fault"))
	}
	return nil
}

// examine asks the database. What is wrong with it is advice; only wrong use is an error.
func (a *app) examine(ctx context.Context, c *config.Config, answer *doctorAnswer) error {
	l, done, err := a.openLedger(ctx, c)
	if err == nil {
		defer done()
		var d ledger.Durability
		if d, err = l.Durability(ctx, time.Now); err == nil {
			answer.Database = fmt.Sprintf("PostgreSQL %s, schema of this program, tenant %s", d.ServerVersion, l.Tenant())
			answer.Advice = append(answer.Advice, d.Advise(c.Database.DirectURL != "")...)
			return nil
		}
	}
	if exitCode(err) == exitUsage || errors.Is(err, context.Canceled) {
		return err
	}
	answer.Advice = append(answer.Advice, ledger.Advice{Level: ledger.Faulty, About: "database", Text: err.Error()})
	return nil
}

func (d doctorAnswer) text(w io.Writer) error {
	var b strings.Builder
	if d.Database != "" {
		fmt.Fprintf(&b, "ok       database: %s\n", d.Database)
	}
	for _, v := range d.Advice {
		fmt.Fprintf(&b, "%-8s %s: %s\n", v.Level, v.About, v.Text)
	}
	for _, f := range d.Actions {
		fmt.Fprintf(&b, "action   %s at %s, %s: %s; %s; %s\n", f.Action, f.Source, f.Class, f.Keys, f.Lookup, f.NotFound)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// footingOf says what keeps the action from happening twice, how a lost answer is found
// out, and what it is worth when nothing is found.
func footingOf(p recon.Policy, s recon.Sheet) footing {
	f := footing{Action: p.Action, Source: p.Source, Class: p.Class}
	switch {
	case p.NeedsNoKey():
		f.Keys = "needs no key"
	case p.KeyLifetime == 0:
		f.Keys = "no keys, so it is never sent again after a lost answer"
	case !slices.Contains(p.Marks, recon.MarkKey):
		f.Keys = "its key is not sent (marks), so it is never sent again after a lost answer"
	default:
		f.Keys = fmt.Sprintf("keys (%s)", p.KeyLifetime)
	}
	if p.Repeat == recon.RepeatNever {
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
