package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/seed-1c4f4dc2/reconciler/internal/localpg"
	"github.com/seed-1c4f4dc2/reconciler/internal/world"
)

const (
	// What the demo leaves in --dir. The names are its own, so that removing what an
	// earlier demo left there never takes anything else.
	demoLedger = "demo-ledger"
	demoReport = "demo-report.txt"
)

// errWrong makes a demo that concluded wrongly exit 1. Its story says what.
var errWrong = errors.New("the ledger concluded wrongly; please report the seed")

func newDemoCommand(a *app) *cobra.Command {
	var options world.Options
	var dir string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Simulate two days of lost answers and judge the product against the truth",
		Long: "Simulates two days of a shop whose agent makes refunds over a network that loses answers. It starts a\n" +
			"PostgreSQL and a provider of its own and needs no account. The same seed gives the same result.",
		Args: exactly(),
		RunE: a.verb(func(ctx context.Context, _ []string) error { return a.demo(ctx, options, dir) }),
	}
	cmd.Flags().Uint64Var(&options.Seed, "seed", 1, "what the world is made from")
	cmd.Flags().IntVar(&options.Operations, "operations", 300, "how many refunds the agent makes")
	cmd.Flags().StringVar(&dir, "dir", "", "keep the ledger and the story in this directory, in place of an earlier demo's (default: keep nothing)")
	return cmd
}

func (a *app) demo(ctx context.Context, o world.Options, dir string) error {
	if o.Operations < 1 || o.Operations > world.MaxOperations {
		return misuse("--operations %d: give a number between 1 and %d", o.Operations, world.MaxOperations)
	}
	server, err := a.startDemoServer(ctx, dir)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
		defer cancel()
		if err := server.Stop(ctx); err != nil {
			fmt.Fprintln(a.err, "reconciler: "+err.Error())
		}
	}()
	if err := server.CreateDatabase(ctx, localDatabase); err != nil {
		return err
	}
	o.DatabaseURL = server.URL(localDatabase)
	verdict, err := world.Run(ctx, o)
	if err != nil {
		return fmt.Errorf("simulate seed %d: %w", o.Seed, err)
	}
	if dir != "" {
		if verdict.Report, err = writeReport(dir, verdict); err != nil {
			return err
		}
	}
	err = a.print(verdict, func(w io.Writer) error {
		if err := verdict.Tell(w); err != nil {
			return err
		}
		return tellNext(w, verdict, dir)
	})
	if err == nil && verdict.Wrong > 0 {
		return errWrong
	}
	return err
}

// startDemoServer starts the demo's PostgreSQL: one that leaves nothing behind, or one
// in dir that can be looked at afterwards.
func (a *app) startDemoServer(ctx context.Context, dir string) (*localpg.Server, error) {
	if dir == "" {
		return localpg.Start(ctx, localpg.Options{Throwaway: true})
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find --dir: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make --dir: %w", err)
	}
	kept := filepath.Join(dir, demoLedger)
	before, err := localpg.Discard(kept)
	if err != nil {
		return nil, fmt.Errorf("replace the ledger of an earlier demo: %w", err)
	}
	if before {
		fmt.Fprintln(a.err, "reconciler: the ledger of an earlier demo in "+kept+" is replaced")
	}
	return localpg.Start(ctx, localpg.Options{Dir: kept, Throwaway: true})
}

// writeReport writes the story beside the kept ledger, whole or not at all.
func writeReport(dir string, v world.Verdict) (string, error) {
	name := filepath.Join(dir, demoReport)
	f, err := os.CreateTemp(dir, demoReport+".*")
	if err != nil {
		return "", fmt.Errorf("write the story: %w", err)
	}
	defer os.Remove(f.Name()) // after the rename there is nothing to remove
	if err := errors.Join(v.Tell(f), f.Chmod(0o644), f.Close()); err != nil {
		return "", fmt.Errorf("write the story: %w", err)
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return "", fmt.Errorf("write the story: %w", err)
	}
	return name, nil
}

// tellNext says how to go on from the demo.
func tellNext(w io.Writer, v world.Verdict, dir string) error {
	if dir == "" {
		_, err := fmt.Fprintf(w, "\nKeep the ledger to look into it: reconciler demo --seed %d --dir DIR\n", v.Seed)
		return err
	}
	_, err := fmt.Fprintf(w, "\nThe story is in %s. Look into the ledger itself:\n"+
		"  reconciler operations list --database-url local:%s\n"+
		"  reconciler operations show %s --database-url local:%s\n",
		v.Report, filepath.Join(dir, demoLedger), v.Tales[0].Story.Operation.ID, filepath.Join(dir, demoLedger))
	return err
}
