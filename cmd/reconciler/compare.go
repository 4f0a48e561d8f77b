package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/reports"
	"github.com/seed-1c4f4dc2/reconciler/rules"
	"github.com/seed-1c4f4dc2/reconciler/sources/files"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

type compareFlags struct {
	operations, effects string
	written             string // how the operations are
	format, source      string
	from, to, now, zone string
	failOnFindings      bool
	failOnUnseen        bool
}

// foundError makes findings or unseen windows the exit code, where a flag asks for it.
type foundError struct{ text string }

func (e *foundError) Error() string { return e.text }

// compareGC is by how many percent the memory of a comparison grows before what is no longer
// used is collected.
const compareGC = 40

func newCompareCommand(a *app) *cobra.Command {
	var f compareFlags
	cmd := &cobra.Command{
		Use:   "compare --operations F --effects F",
		Short: "Hold a file of operations against a file of effects; no database, nothing is stored",
		Long: "Sorts every operation and every effect into one class and tells what is wrong, by the same rules as a sweep.\n" +
			"Policies, accounts, zone and column maps come from the configuration, where there is one. A row that cannot be read\n" +
			"for sure, a repeated operation and lines that contradict each other refuse the file, with the line.\n" +
			"Without --from and --to all that the files hold is counted.",
		Args: exactly(),
		RunE: a.verb(func(ctx context.Context, _ []string) error { return a.compare(ctx, f) }),
	}
	cmd.Flags().StringVar(&f.operations, "operations", "", "file of operations, JSON Lines, or CSV whose header names the fields of such a line")
	bindOperationsFormat(cmd, &f.written)
	cmd.Flags().StringVar(&f.effects, "effects", "", "file of effects, JSON Lines or CSV")
	cmd.Flags().StringVar(&f.format, "effects-format", "", "how the effects are written: jsonl, stripe-balance, stripe-payments, or a source or format of the configuration (default: jsonl, unless the file is CSV)")
	cmd.Flags().StringVar(&f.source, "effects-source", "", "source that a CSV file is of (default: the only one that the operations name)")
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
	shown := a.reading("reading", "comparing", operations, effects)
	o.Operations, o.OperationsName, o.Effects, o.EffectsName = shown.reader(operations), f.operations, shown.reader(effects), f.effects
	began := time.Now()
	// What a comparison keeps of large files holds no pointers: collecting costs little, and
	// letting the heap double costs a lot.
	debug.SetGCPercent(compareGC)
	r, err := sweep.Compare(ctx, o)
	shown.end()
	if err != nil {
		return err
	}
	for _, n := range r.Notes {
		fmt.Fprintln(a.err, "reconciler: "+n)
	}
	r.DurationMS = time.Since(began).Milliseconds()
	page := comparisonOf(r, o.Now, o.Zone)
	page.Exponents = map[string]int{}
	for _, p := range o.Policies {
		maps.Copy(page.Exponents, p.Exponents)
	}
	if err := a.print(r, func(w io.Writer) error { return reports.Compare(w, page) }); err != nil {
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
	if o.OperationsTable, err = operationsTable(f.written, f.operations); err != nil {
		return o, err
	}
	if o.EffectsFormat, err = effectsFormat(f, c); err != nil {
		return o, err
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
	if o.Window.To.After(o.Now) {
		return o, misuse("--to %s ends at %s, which is after now (%s): what is still to come cannot be compared", f.to,
			recon.TimeText(o.Window.To, o.Zone), recon.TimeText(o.Now, o.Zone))
	}
	return o, nil
}

func bindOperationsFormat(cmd *cobra.Command, written *string) {
	cmd.Flags().StringVar(written, "operations-format", "", "how the operations are written: jsonl or csv (default: csv for files that end in .csv, .tsv or .txt, else jsonl)")
}

// operationsTable reports whether a file of operations is a table, as its format says or
// else its name.
func operationsTable(written, name string) (bool, error) {
	switch written {
	case "":
		return isTable(name), nil
	case files.JSONLines, "csv":
		return written == "csv", nil
	}
	return false, misuse("--operations-format %s is not known; there are %s and csv", written, files.JSONLines)
}

// isTable reports whether a file's name ends as those of tables do.
func isTable(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".csv", ".tsv", ".txt":
		return true
	}
	return false
}

// effectsFormat says how the file of effects is written; nil: JSON Lines.
func effectsFormat(f compareFlags, c *config.Config) (*files.Format, error) {
	name := f.format
	if name == "" && isTable(f.effects) {
		return nil, misuse("%s is a table: say how it is written with --effects-format; there are %s. Any other table needs a column map in the configuration (docs/files.md)", f.effects, strings.Join(formatNames(c), ", "))
	}
	if name == "" || name == files.JSONLines {
		return nil, nil
	}
	found, err := findFormat(name, f.source, c)
	if err != nil || found.Name == files.JSONLines {
		return nil, err
	}
	if found.Source != "" {
		for _, p := range c.Policies {
			if p.Source == found.Source && !slices.Contains(found.Kinds, p.Effect) {
				found.Kinds = append(found.Kinds, p.Effect)
			}
		}
	}
	return &found, nil
}

// findFormat looks among the sources of the configuration, by name and by the name of their
// format, and then among the formats that need none.
func findFormat(name, source string, c *config.Config) (files.Format, error) {
	_, builtin := files.Builtin(name, "")
	var fits []config.Source
	for _, s := range c.Sources {
		byName := string(s.Name) == name || s.Format.Name == name || builtin && s.Kind == "stripe"
		if byName && (source == "" || source == string(s.Name)) {
			fits = append(fits, s)
		}
	}
	switch {
	case len(fits) == 1 && builtin:
		format, _ := files.Builtin(name, fits[0].Name)
		return format.Of(fits[0].Sheet), nil
	case len(fits) == 1:
		return fits[0].Format, nil
	case len(fits) > 1:
		var names []string
		for _, s := range fits {
			names = append(names, string(s.Name))
		}
		return files.Format{}, misuse("--effects-format %s: the file could be of %s; say which with --effects-source", name, strings.Join(names, ", "))
	case builtin:
		format, _ := files.Builtin(name, recon.SourceName(source))
		return format, nil
	}
	if slices.ContainsFunc(c.Sources, func(s config.Source) bool { return string(s.Name) == name || s.Format.Name == name }) {
		return files.Format{}, misuse("--effects-format %s is not of --effects-source %s; leave that out, or name its own source", name, source)
	}
	return files.Format{}, misuse("--effects-format %s is not known; there are %s", name, strings.Join(formatNames(c), ", "))
}

// formatNames lists the ways in which effects may be written.
func formatNames(c *config.Config) []string {
	names := []string{files.JSONLines, files.StripeBalance, files.StripePayments}
	for _, s := range c.Sources {
		for _, name := range []string{string(s.Name), s.Format.Name} {
			if name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// comparisonOf is the result as the page for people shows it.
func comparisonOf(r sweep.CompareResult, now time.Time, zone *time.Location) reports.Comparison {
	c := reports.Comparison{
		From: r.Window.From, To: r.Window.To, Now: now, Zone: zone,
		Operations: r.Operations, Effects: r.Effects, Repeated: r.Repeated, SetAside: r.SetAside,
		OperationClasses: named(r.Classes.Operations), EffectClasses: named(r.Classes.Effects),
	}
	for _, f := range r.Findings {
		c.Findings = append(c.Findings, reports.Compared{
			Finding: recon.Finding{Kind: f.Kind, Certainty: f.Certainty, Operations: f.Operations, Effects: f.Effects,
				Observed: f.Observed, Reason: f.Reason, Money: f.Money},
			Operations: f.Ours, Effects: f.Theirs,
		})
	}
	for _, h := range r.Happened {
		c.Happened = append(c.Happened, reports.Happened(h))
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
