package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1c4f4dc2/reconciler/inbox"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func newInboxCommand(a *app) *cobra.Command {
	return group("inbox", "List or replay the events that providers delivered", a.newInboxList(), a.newInboxReplay())
}

// inboxFlags choose events.
type inboxFlags struct {
	source, typ, from, to string
	states                []string
	limit                 int
}

func (f *inboxFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.source, "source", "", "only of this source")
	cmd.Flags().StringVar(&f.typ, "type", "", "only of this type; * stands for anything: refund.*")
	cmd.Flags().StringVar(&f.from, "from", "", "only received at or after this instant, or the start of this day")
	cmd.Flags().StringVar(&f.to, "to", "", "only received before this instant, or the end of this day")
	cmd.Flags().StringArrayVar(&f.states, "state", nil, "only in this state: "+words(inbox.States)+"; may be repeated")
}

// filter reads the flags.
func (f *inboxFlags) filter(ids []string, zone *time.Location) (inbox.Filter, error) {
	out := inbox.Filter{IDs: ids, Type: f.typ, Source: recon.SourceName(f.source), Limit: f.limit}
	for _, s := range f.states {
		if !inbox.State(s).Valid() {
			return out, misuse("--state %s: write one of %s", s, words(inbox.States))
		}
		out.States = append(out.States, inbox.State(s))
	}
	var err error
	if out.From, err = parseInstant("from", f.from, zone, dayStart); err != nil {
		return out, err
	}
	if out.To, err = parseInstant("to", f.to, zone, dayEnd); err != nil {
		return out, err
	}
	if !out.From.IsZero() && !out.To.IsZero() && !out.From.Before(out.To) {
		return out, misuse("--from %s is not before --to %s", f.from, f.to)
	}
	return out, nil
}

// withInbox opens the inbox for a verb that may be narrowed to a source.
func (a *app) withInbox(ctx context.Context, source recon.SourceName, f func(*inbox.Store, *ledger.Ledger, *time.Location) error) error {
	c, err := a.maybeConfig()
	if err != nil {
		return err
	}
	return a.withLedger(ctx, func(l *ledger.Ledger) error {
		if err := knownSource(ctx, l, c, source); err != nil {
			return err
		}
		return f(inbox.Open(l), l, c.Zone)
	})
}

func (a *app) newInboxList() *cobra.Command {
	var f inboxFlags
	cmd := &cobra.Command{
		Use: "list [ID]...", Short: "List events, the newest arrival first",
		Long: "States: new (to be taken in), waiting (that failed and is tried again), done, failed (given up; `inbox replay` tries again), " +
			"ignored (of an account or mode that is none of the source's).",
	}
	f.add(cmd)
	cmd.Flags().IntVar(&f.limit, "limit", 100, "at most so many, up to 10,000")
	cmd.RunE = a.verb(func(ctx context.Context, ids []string) error {
		if f.limit < 1 || f.limit > 10_000 {
			return misuse("--limit %d: write a number from 1 to 10000", f.limit)
		}
		return a.withInbox(ctx, recon.SourceName(f.source), func(box *inbox.Store, _ *ledger.Ledger, zone *time.Location) error {
			filter, err := f.filter(ids, zone)
			if err != nil {
				return err
			}
			rows, err := box.List(ctx, filter)
			if err != nil {
				return err
			}
			defer a.cut(len(rows), filter.Limit)
			err = a.print(eventDocuments(rows), func(w io.Writer) error { return writeEvents(w, rows, zone) })
			return errors.Join(err, missingEvents(ids, rows))
		})
	})
	return cmd
}

// missingEvents says which of the named events are not there.
func missingEvents(ids []string, rows []inbox.Row) error {
	here := map[string]bool{}
	for _, r := range rows {
		here[r.ID] = true
	}
	var faults []error
	for _, id := range ids {
		if !here[id] {
			faults = append(faults, fmt.Errorf("there is no event %s in the inbox that fits", recon.Printable(id)))
		}
	}
	return errors.Join(faults...)
}

// eventDocument is one event as JSON.
type eventDocument struct {
	ID         string     `json:"id"`
	Source     string     `json:"source"`
	Account    string     `json:"account"`
	Mode       string     `json:"mode"`
	Type       string     `json:"type"`
	State      string     `json:"state"`
	Signed     bool       `json:"signed"`
	Deliveries int        `json:"deliveries"`
	Attempts   int        `json:"attempts"`
	CreatedAt  time.Time  `json:"created_at"`
	ReceivedAt time.Time  `json:"received_at"`
	NextTry    *time.Time `json:"next_try,omitempty"`
	DoneAt     *time.Time `json:"done_at,omitempty"`
	LastError  string     `json:"last_error,omitempty"`
	HasBytes   bool       `json:"has_bytes"`
}

func eventDocuments(rows []inbox.Row) []eventDocument {
	orNull := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		return &t
	}
	list := make([]eventDocument, 0, len(rows))
	for _, r := range rows {
		list = append(list, eventDocument{
			ID: r.ID, Source: string(r.Source), Account: r.Account, Mode: r.Mode, Type: r.Type, State: string(r.State), Signed: r.Signed,
			Deliveries: r.Deliveries, Attempts: r.Attempts, CreatedAt: r.CreatedAt, ReceivedAt: r.ReceivedAt,
			NextTry: orNull(r.NextTry), DoneAt: orNull(r.DoneAt), LastError: r.LastError, HasBytes: r.HasBytes,
		})
	}
	return list
}

func writeEvents(w io.Writer, rows []inbox.Row, zone *time.Location) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(w, "no events")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "event\ttype\tstate\treceived\tsource\tdeliveries\tattempts\tlast error")
	for _, r := range rows {
		deliveries := fmt.Sprint(r.Deliveries)
		if r.Deliveries == 0 {
			deliveries = "none: fetched"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", recon.Printable(r.ID), recon.Printable(r.Type), r.State,
			recon.TimeText(r.ReceivedAt, zone), recon.Printable(string(r.Source)), deliveries, r.Attempts, recon.Printable(r.LastError))
	}
	return t.Flush()
}

func (a *app) newInboxReplay() *cobra.Command {
	var f inboxFlags
	cmd := &cobra.Command{
		Use: "replay [ID]...", Short: "Have events taken in once more",
		Long: "Events are named by id, or chosen by --type, --source, --state, --from and --to; all that are chosen fit all that is given. " +
			"The daemon takes them in at once. Taking an event in twice changes nothing.",
	}
	f.add(cmd)
	cmd.RunE = a.verb(func(ctx context.Context, ids []string) error {
		if len(ids) == 0 && f.typ == "" && f.source == "" && f.from == "" && f.to == "" && len(f.states) == 0 {
			return misuse("inbox replay needs to know which events: name ids, or give --type, --source, --state, --from or --to")
		}
		return a.withInbox(ctx, recon.SourceName(f.source), func(box *inbox.Store, l *ledger.Ledger, zone *time.Location) error {
			filter, err := f.filter(ids, zone)
			if err != nil {
				return err
			}
			return a.replay(ctx, box, l, filter)
		})
	})
	return cmd
}

func (a *app) replay(ctx context.Context, box *inbox.Store, l *ledger.Ledger, f inbox.Filter) error {
	now, err := l.Now(ctx)
	if err != nil {
		return err
	}
	var rows []inbox.Row
	if len(f.IDs) > 0 {
		all := f
		all.Limit = 10_000
		if rows, err = box.List(ctx, all); err != nil {
			return err
		}
		if err := missingEvents(f.IDs, rows); err != nil {
			return err // all that are named or none
		}
	}
	done, err := box.Replay(ctx, f, now)
	if err != nil {
		return err
	}
	err = a.print(done, func(w io.Writer) error {
		text := fmt.Sprintf("%s to be taken in once more", count(done.Replayed, "event"))
		if done.NoBytes > 0 {
			text += fmt.Sprintf("; %d not, because their bytes were dropped", done.NoBytes)
		}
		_, err := fmt.Fprintln(w, text)
		return err
	})
	return errors.Join(err, box.Notify(ctx))
}
