package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1c4f4dc2/reconciler/recon"
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
	if err := a.print(r, func(w io.Writer) error { return writeCompared(w, r) }); err != nil {
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

func writeCompared(w io.Writer, r sweep.CompareResult) error {
	var b strings.Builder
	zone, err := time.LoadLocation(r.Window.Zone)
	if err != nil {
		zone = time.UTC
	}
	fmt.Fprintf(&b, "from %s to %s\n", recon.TimeText(r.Window.From, zone), recon.TimeText(r.Window.To, zone))
	writeClasses(&b, r.Operations, "operation", r.Classes.Operations)
	writeClasses(&b, r.Effects, "effect", r.Classes.Effects)
	if r.Repeated > 0 {
		fmt.Fprintf(&b, "%s told of an effect again\n", count(r.Repeated, "line"))
	}
	for _, u := range r.Unseen {
		fmt.Fprintf(&b, "not seen: %s from %s to %s: %s\n", u.Source, recon.TimeText(u.From, zone), recon.TimeText(u.To, zone), recon.Printable(u.Why))
	}
	fmt.Fprintf(&b, "%s\n", count(len(r.Findings), "finding"))
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "\n%s (%s): %s\n", f.Kind, f.Certainty, recon.Printable(f.Reason))
		writeNames(&b, "operations", f.Operations)
		writeNames(&b, "effects", f.EffectIDs)
		for _, d := range f.Observed {
			fmt.Fprintf(&b, "  %s: ours %s, theirs %s\n", recon.Noun(d.Field), recon.Printable(d.Ours), recon.Printable(d.Theirs))
		}
	}
	_, err = io.WriteString(w, b.String())
	return err
}

func writeNames[S ~string](b *strings.Builder, noun string, names []S) {
	if len(names) == 0 {
		return
	}
	texts := make([]string, 0, len(names))
	for _, n := range names {
		texts = append(texts, recon.Printable(string(n)))
	}
	fmt.Fprintf(b, "  %s: %s\n", noun, strings.Join(texts, ", "))
}

func writeClasses(b *strings.Builder, total int, noun string, classes map[rules.Class]int) {
	fmt.Fprintf(b, "%s:", count(total, noun))
	names := make([]rules.Class, 0, len(classes))
	for name, n := range classes {
		if n > 0 {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(x, y rules.Class) int {
		if classes[x] != classes[y] {
			return classes[y] - classes[x]
		}
		return strings.Compare(string(x), string(y))
	})
	for i, name := range names {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(b, " %d %s", classes[name], recon.Noun(string(name)))
	}
	b.WriteString("\n")
}
