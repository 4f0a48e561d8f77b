package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/nightly"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/reports"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

const (
	runReport = "report/day"
	// maxReport bounds the report of a day together with its wait for the night's audits.
	maxReport = maxWait + time.Hour
	// maxWait is how long a report waits for audits. One that is still under way then is
	// told as a part of the day that was not audited.
	maxWait = 6 * time.Hour
	// waitAgain is when it is looked again whether the audits are done.
	waitAgain = 5 * time.Second
)

// reports gives the report of the day before as a run of the schedule: made as the verb
// does, written into the folder, and told once to each destination.
func (d *daemon) reports(l *ledger.Ledger) func(context.Context, sweep.Options) (told, error) {
	return func(ctx context.Context, o sweep.Options) (told, error) {
		var news recon.DayReport
		start := ledger.RunStart{Name: runReport, Tick: o.Tick, Holder: d.Holder}
		err := inPlace(ctx, l, start, func(ctx context.Context) (counts any, err error) {
			news, err = d.reportOfTheDayBefore(ctx, l, o.Now)
			return struct{ Day, Page string }{news.Day, news.Page}, err
		})
		return told{changed: true, attrs: []any{"day", news.Day, "page", news.Page, "gaps", len(news.Gaps) + news.MoreGaps}}, err
	}
}

func (d *daemon) reportOfTheDayBefore(ctx context.Context, l *ledger.Ledger, now func() time.Time) (recon.DayReport, error) {
	due := lastDue(d.Config.Schedule.Report, now())
	if err := d.awaitAudits(ctx, l, due, now); err != nil {
		return recon.DayReport{}, err
	}
	w, name := nightly.DayBefore(due, d.Config.Zone)
	n, err := nightly.Report{Ledger: l, Zone: d.Config.Zone, Holder: d.Holder, Unkept: func(err error) {
		d.Log.Warn("the report is not kept in the ledger, so a later one of the same day may differ", "error", err.Error())
	}}.Make(ctx, w, name)
	if err != nil {
		return recon.DayReport{}, err
	}
	// What the day came to is told also where its files cannot be written: nobody reads a
	// page that is not there, and nobody makes this tick again.
	page, missing := d.writeReport(n)
	news := reports.NightlyNews(n, page)
	return news, errors.Join(missing, l.TellReport(ctx, news, d.Holder, d.Config.Reports.To, now()))
}

// writeReport writes the files of a day, and says how somebody writes them who mended what
// was in the way.
func (d *daemon) writeReport(n *reports.Nightly) (page string, err error) {
	out := d.Config.Reports.Out
	if err = nightly.MakeFolder(out); err == nil {
		page, err = nightly.Write(out, n)
	}
	if err != nil {
		err = fmt.Errorf("%w; mend that, and `reconciler report --day %s --out %s` writes the files of the day", err, n.Window.Name, out)
	}
	return page, err
}

// awaitAudits waits until every audit that was due before the report has ended, well or
// not: after an outage both are made up for at once.
func (d *daemon) awaitAudits(ctx context.Context, l *ledger.Ledger, due time.Time, now func() time.Time) error {
	since := lastDue(d.Config.Schedule.Audit, due)
	if since.IsZero() {
		return nil // they are off
	}
	for deadline := now().Add(maxWait); ; {
		open, err := d.openAudits(ctx, l, since)
		switch {
		case err == nil && len(open) == 0:
			return nil
		case err != nil && !ledger.Passing(err): // a database that is away for a moment ends no wait of hours
			return err
		}
		if now().After(deadline) {
			d.Log.Warn("the report does not wait longer for audits", "sources", open)
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(waitAgain):
		}
	}
}

// openAudits are the sources of which no audit that began since has ended. One whose process
// ended in the middle is done again.
func (d *daemon) openAudits(ctx context.Context, l *ledger.Ledger, since time.Time) ([]recon.SourceName, error) {
	var open []recon.SourceName
	for _, s := range d.Config.Sources {
		runs, err := l.LastRuns(ctx, runAudit+"/"+string(s.Name), 1)
		if err != nil {
			return nil, err
		}
		if len(runs) == 0 || runs[0].StartedAt.Before(since) || runs[0].FinishedAt.IsZero() || runs[0].Outcome == ledger.RunAbandoned {
			open = append(open, s.Name)
		}
	}
	return open, nil
}
