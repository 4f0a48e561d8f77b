package main

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/reports"
	"github.com/seed-1c4f4dc2/reconciler/rules"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

type compareFlags struct {
	operations, effects, format string
	from, to, now, zone         string
	failOnFindings              bool
	failOnUnseen                bool
}

// foundError makes findings or unseen windows the exit code, where a flag asks for it.
type foundError struct{ text string }

func (e *foundError) Error() string { return e.text }

func newCompareCommand(a *app) *cobra.Command {
	var f compareFlags
	cmd := &cobra.Command{
		Use:   "compare --operations F.jsonl --effects F.jsonl",
		Short: "Hold a file of operations against a file of effects; no database, nothing is stored",
		Long: "Sorts every operation and every effect into one class and tells what is wrong, by the same rules as a sweep.\n" +
			"Without --from and --to all that the files hold is counted.",
		Args: exactly(),
		RunE: a.verb(func(ctx context.Context, _ []string) error { return a.compare(ctx, f) }),
	}
	cmd.Flags().StringVar(&f.operations, "operations", "", "file of operations, JSON Lines")
	cmd.Flags().StringVar(&f.effects, "effects", "", "file of effects, JSON Lines")
	cmd.Flags().StringVar(&f.format, "effects-format", "jsonl", "how the effects are written: jsonl")
	cmd.Flags().StringVar(&f.from, "from", "", "count from this instant, or the start of this day")
	cmd.Flags().StringVar(&f.to, "to", "", "count up to this instant, or the end of this day")
	cmd.Flags().StringVar(&f.now, "now", "", "judge ages by this instant, or the start of this day (default: the clock)")
	cmd.Flags().StringVar(&f.zone, "zone", "", "zone of dates and of the answer (default: the configuration's, else UTC)")
	cmd.Flags().BoolVar(&f.failOnFindings, "fail-on-findings", false, "exit 3 when there are findings")
	cmd.Flags().BoolVar(&f.failOnUnseen, "fail-on-unseen", false, "exit 3 when a part could not be seen")
	return cmd
}

func (a *app) compare(ctx context.Context, f compareFlags) error {
	o, err := a.compareOptions(f)
	if err != nil {
		return err
	}
	operations, err := openFile("--operations", f.operations)
	if err != nil {
		return err
	}
	defer operations.Close()
	effects, err := openFile("--effects", f.effects)
	if err != nil {
		return err
	}
	defer effects.Close()
	o.Operations, o.OperationsName, o.Effects, o.EffectsName = operations, f.operations, effects, f.effects
	began := time.Now()
	r, err := sweep.Compare(ctx, o)
	if err != nil {
		return err
	}
	r.DurationMS = time.Since(began).Milliseconds()
	if err := a.print(r, func(w io.Writer) error { return reports.Compare(w, comparisonOf(r, o.Now, o.Zone)) }); err != nil {
		return err
	}
	switch {
	case f.failOnFindings && len(r.Findings) > 0:
		return &foundError{count(len(r.Findings), "finding")}
	case f.failOnUnseen && len(r.Unseen) > 0:
		return &foundError{count(len(r.Unseen), "part") + " could not be seen"}
	}
	return nil
}

func openFile(flag, name string) (*os.File, error) {
	if name == "" {
		return nil, misuse("compare needs %s FILE", flag)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, misuse("%s: %v", flag, err)
	}
	return f, nil
}

func (a *app) compareOptions(f compareFlags) (sweep.CompareOptions, error) {
	var o sweep.CompareOptions
	if f.format != "jsonl" {
		return o, misuse("--effects-format %s: this build reads jsonl", f.format)
	}
	c, err := a.maybeConfig()
	if err != nil {
		return o, err
	}
	o.Zone = c.Zone
	if f.zone != "" {
		if o.Zone, err = time.LoadLocation(f.zone); err != nil || f.zone == "Local" {
			return o, misuse("--zone %s: write a time zone such as Europe/Berlin", f.zone)
		}
	}
	if c.Path != "" {
		o.Policies = map[string]recon.Policy{}
		for _, p := range c.Policies {
			o.Policies[p.Action] = p
		}
	}
	if o.Window.From, err = parseInstant("from", f.from, o.Zone, dayStart); err != nil {
		return o, err
	}
	if o.Window.To, err = parseInstant("to", f.to, o.Zone, dayEnd); err != nil {
		return o, err
	}
	if !o.Window.To.IsZero() && !o.Window.From.Before(o.Window.To) {
		return o, misuse("--from %s is not before --to %s", f.from, f.to)
	}
	if o.Now, err = parseInstant("now", f.now, o.Zone, dayStart); err != nil {
		return o, err
	}
	if o.Now.IsZero() {
		o.Now = time.Now().UTC()
	}
	return o, nil
}

// comparisonOf is the result as the page for people shows it.
func comparisonOf(r sweep.CompareResult, now time.Time, zone *time.Location) reports.Comparison {
	c := reports.Comparison{
		From: r.Window.From, To: r.Window.To, Now: now, Zone: zone,
		Operations: r.Operations, Effects: r.Effects, Repeated: r.Repeated,
		OperationClasses: named(r.Classes.Operations), EffectClasses: named(r.Classes.Effects),
	}
	for _, f := range r.Findings {
		c.Findings = append(c.Findings, reports.Compared{
			Finding: recon.Finding{Kind: f.Kind, Certainty: f.Certainty, Operations: f.Operations, Effects: f.Effects,
				Observed: f.Observed, Reason: f.Reason, Money: f.Money},
			Operations: f.Ours, Effects: f.Theirs,
		})
	}
	for _, u := range r.Unseen {
		c.Unseen = append(c.Unseen, reports.Unseen(u))
	}
	return c
}

func named(classes map[rules.Class]int) map[string]int {
	names := make(map[string]int, len(classes))
	for class, n := range classes {
		names[string(class)] = n
	}
	return names
}
