package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
)

func newDoctorCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Tell what is wrong, and what to do, with database, sources, destinations, schedule, the folder of reports and the files of secrets; and what each action rests on", Args: exactly(),
		Long: "Changes nothing. Each source is asked for the newest objects of the kinds that actions make, a request each, and Slack whether it would take a message. " +
			"Exits 1 when there is a fault; warnings are no failure.",
		RunE: a.verb(a.doctor),
	}
}

// doctorAnswer is what the doctor found.
type doctorAnswer struct {
	OK       bool            `json:"ok"`
	Database string          `json:"database"` // empty: see advice
	Advice   []ledger.Advice `json:"advice"`   // what is well is told too
	Actions  []footing       `json:"actions"`
}

func (a *app) doctor(ctx context.Context, _ []string) error {
	c, err := a.needConfig("doctor")
	if err != nil {
		return err
	}
	answer := doctorAnswer{Advice: []ledger.Advice{}, Actions: footingsOf(c)}
	l, done, err := a.examine(ctx, c, &answer)
	if err != nil {
		return err
	}
	defer done()
	for _, n := range c.Notes {
		answer.Advice = append(answer.Advice, warning("configuration", "%s", n))
	}
	answer.Advice = append(answer.Advice, sourceAdvice(ctx, c, l)...)
	answer.Advice = append(answer.Advice, destinationAdvice(ctx, c)...)
	answer.Advice = append(answer.Advice, reportAdvice(c)...)
	answer.Advice = append(answer.Advice, secretAdvice(c.SecretFiles)...)
	if err := ctx.Err(); err != nil {
		return err // what was broken off is no fault of anybody
	}
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

func (d doctorAnswer) text(w io.Writer) error {
	var b strings.Builder
	if d.Database != "" {
		fmt.Fprintf(&b, "ok       database: %s\n", d.Database)
	}
	for _, v := range d.Advice {
		fmt.Fprintf(&b, "%-8s %s: %s\n", v.Level, v.About, v.Text)
	}
	for _, f := range d.Actions {
		fmt.Fprintf(&b, "action   %s\n", f)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
