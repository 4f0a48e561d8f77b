package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/daemon"
)

//go:generate go run . docs --dir ../../docs

// newDocsCommand writes the pages that are made from the program itself, so that they
// cannot say something else.
func newDocsCommand(a *app) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "docs", Short: "Write docs/cli.md, docs/config.md and docs/metrics.md", Hidden: true, Args: exactly(),
	}
	cmd.Flags().StringVar(&dir, "dir", "docs", "where to write them")
	cmd.RunE = a.verb(func(context.Context, []string) error {
		for name, page := range map[string]func(io.Writer){
			"cli.md":    func(w io.Writer) { cliPage(w, cmd.Root()) },
			"config.md": configPage,
			"metrics.md": func(w io.Writer) {
				fmt.Fprint(w, generated, "# Metrics\n\n", daemon.MetricsPage())
			},
		} {
			var b bytes.Buffer
			page(&b)
			if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o644); err != nil {
				return fmt.Errorf("write %s: %w", name, err)
			}
		}
		return nil
	})
	return cmd
}

const generated = "<!-- Made by `make generate` from the program. Change that, not this. -->\n"

func configPage(w io.Writer) {
	fmt.Fprint(w, generated, "# Configuration\n\n",
		"`reconciler config example` prints this file, `reconciler config check` tells what is wrong with yours, and\n",
		"`reconciler config show` prints it with the defaults filled in and secrets redacted.\n\n```yaml\n", config.Example, "```\n")
}

func cliPage(w io.Writer, root *cobra.Command) {
	fmt.Fprint(w, generated, "# Commands\n\n", root.Short, ".\n\n## Everywhere\n\n")
	flags(w, root.PersistentFlags())
	fmt.Fprint(w, `
With `+"`--format json`"+` standard output is one document; logs go to standard error.

| exit | means |
|---|---|
| 0 | done; a source that could not be asked is no failure |
| 1 | failed |
| 2 | wrong use or configuration |
| 3 | findings or unseen windows, with `+"`--fail-on-findings` or `--fail-on-unseen`"+` |
| 4 | another run holds the place |
`)
	for _, cmd := range root.Commands() {
		cliCommand(w, cmd)
	}
}

func cliCommand(w io.Writer, cmd *cobra.Command) {
	if cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "completion" {
		return
	}
	if cmd.HasSubCommands() {
		for _, sub := range cmd.Commands() {
			cliCommand(w, sub)
		}
		return
	}
	fmt.Fprintf(w, "\n## %s\n\n%s.\n", cmd.CommandPath(), cmd.Short)
	if cmd.Long != "" {
		fmt.Fprintf(w, "%s\n", cmd.Long)
	}
	fmt.Fprintf(w, "\n    %s\n\n", cmd.UseLine())
	flags(w, cmd.LocalNonPersistentFlags())
}

func flags(w io.Writer, set *pflag.FlagSet) {
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name, usage := pflag.UnquoteUsage(f)
		kind := ""
		if name != "" {
			kind = " " + strings.ToUpper(name)
		}
		fmt.Fprintf(w, "* `--%s%s`: %s\n", f.Name, kind, usage)
	})
}
