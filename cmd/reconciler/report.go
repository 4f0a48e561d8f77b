package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/nightly"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/reports"
)

type reportFlags struct{ day, from, to, out string }

func newReportCommand(a *app) *cobra.Command {
	var f reportFlags
	cmd := &cobra.Command{
		Use:   "report --out DIR",
		Short: "Write the report of a day or a range: HTML, CSV, JSON and text that say the same",
		Long: "Tells what became of everything that was opened or made in the range: totals by source, action and currency, what the audits " +
			"found, what nobody looked into or could see, how old open operations are, how long doubts lasted, and every finding with both sides. " +
			"It asks no provider; `reconciler audit` does.\n" +
			"A range that is over and was audited gives the same files every time, until another audit has looked into it. " +
			"Files are written beside their places and put there whole.",
		Args: exactly(),
		RunE: a.verb(func(ctx context.Context, _ []string) error { return a.report(ctx, f) }),
	}
	cmd.Flags().StringVar(&f.day, "day", "", "the local day, such as 2026-03-01 (default: yesterday)")
	cmd.Flags().StringVar(&f.from, "from", "", "from this instant, or the start of this day")
	cmd.Flags().StringVar(&f.to, "to", "", "up to this instant, or the end of this day")
	cmd.Flags().StringVar(&f.out, "out", "", "the folder for the files; it is made where it is missing")
	return cmd
}

func (a *app) report(ctx context.Context, f reportFlags) error {
	if f.out == "" {
		return misuse("report needs --out: the folder for its files")
	}
	c, err := a.needed("report", config.FindUnread)
	if err != nil {
		return err
	}
	if _, _, err := f.window(c.Zone, time.Time{}); err != nil {
		return err
	}
	l, done, err := a.openLedger(ctx, c)
	if err != nil {
		return err
	}
	defer done()
	now, err := l.Now(ctx)
	if err != nil {
		return err
	}
	w, name, err := f.window(c.Zone, now)
	if err != nil {
		return err
	}
	if err := nightly.MakeFolder(f.out); err != nil {
		return misuse("--out %v", err)
	}
	r := nightly.Report{Ledger: l, Zone: c.Zone, Holder: holder(), Unkept: func(err error) {
		fmt.Fprintf(a.err, "reconciler: the report is not kept in the ledger, so a later one of the same range may differ: %v\n", err)
	}}
	n, err := r.Make(ctx, w, name)
	if err != nil {
		return err
	}
	page, err := nightly.Write(f.out, n)
	if err != nil {
		return err
	}
	if a.format == "json" {
		return reports.NightlyJSON(a.out, n)
	}
	return reports.NightlySummary(a.out, n, page)
}

// window reads the range and names it. A zero now checks what can be checked without one.
func (f reportFlags) window(zone *time.Location, now time.Time) (w recon.Window, name string, err error) {
	from, to := f.from, f.to
	switch {
	case f.day != "" && (from != "" || to != ""):
		return w, "", misuse("report takes --day, or --from and --to")
	case (from == "") != (to == ""):
		return w, "", misuse("report needs both --from and --to, or --day")
	case f.day != "":
		if _, err := time.Parse(time.DateOnly, f.day); err != nil {
			return w, "", misuse("--day %s: write a date such as 2026-03-01", f.day)
		}
		from, to = f.day, f.day
	case from == "":
		from = now.In(zone).AddDate(0, 0, -1).Format(time.DateOnly)
		to = from
	}
	if now.IsZero() && f.day == "" && f.from == "" {
		return w, "", nil
	}
	if w.From, err = parseInstant("from", from, zone, dayStart); err != nil {
		return w, "", err
	}
	if w.To, err = parseInstant("to", to, zone, dayEnd); err != nil {
		return w, "", err
	}
	switch {
	case !w.From.Before(w.To):
		return w, "", misuse("--from %s is not before --to %s", from, to)
	case !now.IsZero() && !w.From.Before(now):
		return w, "", misuse("%s begins %s, and now is %s: nothing can be told of what is to come; give a range that has begun",
			rangeName(from, to), recon.TimeText(w.From, zone), recon.TimeText(now, zone))
	}
	return w, rangeName(from, to), nil
}

func rangeName(from, to string) string {
	if from == to {
		return from
	}
	return from + " to " + to
}
