package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
)

// Exit codes. Scripts and black-box checks rely on them.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2 // wrong use or configuration
	exitFound  = 3 // findings or unseen windows, where a flag makes them a failure
	exitHeld   = 4 // another run holds the place
)

type streams struct {
	in       io.Reader
	out, err io.Writer
}

// app is one run of the program: what it was given, and the global flags.
type app struct {
	streams
	env         config.Env
	configPath  string
	databaseURL string
	format      string
	began       bool // a verb's own code has begun: what fails now is no misuse of flags
}

// usageError is a wrong use of the program: it exits 2.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func misuse(format string, args ...any) error {
	return &usageError{text: fmt.Sprintf(format, args...)}
}

// run is the program: it returns the exit code.
func run(ctx context.Context, args, environ []string, s streams) int {
	a := &app{streams: s, env: lookup(environ)}
	root := newRoot(a)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	fmt.Fprintln(s.err, "reconciler: "+err.Error())
	if !a.began {
		fmt.Fprintln(s.err, "reconciler: `reconciler help` lists the commands and their flags")
		return exitUsage
	}
	return exitCode(err)
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:           "reconciler",
		Short:         "Finds out what really happened to operations whose answer was lost",
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if a.format != "text" && a.format != "json" {
				return misuse("--format %s: write text or json", a.format)
			}
			return nil
		},
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.PersistentFlags().StringVar(&a.configPath, "config", "", "configuration file (default: RECONCILER_CONFIG, then ./reconciler.yaml)")
	root.PersistentFlags().StringVar(&a.databaseURL, "database-url", "", "PostgreSQL connection string, or local:DIR for a trial server (default: RECONCILER_DATABASE_URL, then the configuration)")
	root.PersistentFlags().StringVar(&a.format, "format", "text", "text, or json: one document on standard output")
	root.AddCommand(
		newAuditCommand(a), newCompareCommand(a), newConfigCommand(a), newDemoCommand(a), newDocsCommand(a), newDoctorCommand(a), newFindingsCommand(a), newHealthCommand(a), newImportCommand(a), newInboxCommand(a), newMigrateCommand(a),
		newOperationsCommand(a), newPolicyCommand(a), newReportCommand(a), newReverifyCommand(a), newServeCommand(a), newSweepCommand(a), newVersionCommand(a),
	)
	return root
}

// verb wraps the code of a command. What fails before it is a misuse of flags.
func (a *app) verb(f func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.began = true
		return f(cmd.Context(), args)
	}
}

// exactly demands one argument for each name.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return misuse("%s needs %s", cmd.CommandPath(), strings.Join(names[len(args):], " and "))
		}
		if len(args) > len(names) {
			return misuse("%s does not take %q", cmd.CommandPath(), args[len(names)])
		}
		return nil
	}
}

// group makes a command that only has verbs under it. Without one it says which.
func group(use, short string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short}
	names := make([]string, 0, len(verbs))
	for _, v := range verbs {
		names = append(names, v.Name())
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return misuse("%s needs one of: %s", cmd.CommandPath(), strings.Join(names, ", "))
		}
		return misuse("%s has no verb %q; it has: %s", cmd.CommandPath(), args[0], strings.Join(names, ", "))
	}
	cmd.AddCommand(verbs...)
	return cmd
}

// exitCode says how the program ends after an error. Of several the worst counts: a
// failure before a held place.
func exitCode(err error) int {
	var usage *usageError
	var faults *config.Faults
	var missing *config.MissingError
	var argument *ledger.UsageError
	var found *foundError
	switch {
	case errors.As(err, &found):
		return exitFound
	case errors.As(err, &usage), errors.As(err, &faults), errors.As(err, &missing), errors.As(err, &argument):
		return exitUsage
	case slices.ContainsFunc(leaves(err), func(e error) bool { return !held(e) }):
		return exitFailed
	}
	return exitHeld
}

// held reports whether an error says that another run has the place.
func held(err error) bool {
	var running *ledger.RunningError
	var source *ledger.HeldError
	return errors.As(err, &running) || errors.As(err, &source)
}

// leaves takes joined errors apart.
func leaves(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, leaves(e)...)
		}
		return all
	}
	return []error{err}
}

// print writes the answer: one JSON document, or text for people.
func (a *app) print(document any, text func(w io.Writer) error) error {
	if a.format != "json" {
		return text(a.out)
	}
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(document); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

// logger writes to standard error: JSON, unless a person reads along.
func (a *app) logger() *slog.Logger {
	if f, ok := a.err.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return slog.New(slog.NewTextHandler(a.err, nil))
		}
	}
	return slog.New(slog.NewJSONHandler(a.err, nil))
}

// lookup makes a reader of an environment; the last of a repeated variable holds.
func lookup(environ []string) config.Env {
	values := make(map[string]string, len(environ))
	for _, pair := range environ {
		if name, value, ok := strings.Cut(pair, "="); ok {
			values[name] = value
		}
	}
	return func(name string) (string, bool) {
		v, ok := values[name]
		return v, ok
	}
}
