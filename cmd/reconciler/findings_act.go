package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/daemon"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

// personFlags are what the verbs of people take.
type personFlags struct {
	action ledger.PersonAction
	until  string
	span   string
}

// bind adds the flags that every action of a person has, and runs it.
func (f *personFlags) bind(a *app, cmd *cobra.Command, fill func(args []string) error) *cobra.Command {
	cmd.Flags().Int64Var(&f.action.Version, "version", 0, "only if the finding is still at this version (default: whatever it is now)")
	cmd.Flags().StringVar(&f.action.Reason, "reason", "", "why, in your own words; it is kept")
	cmd.RunE = a.verb(func(ctx context.Context, args []string) error {
		f.action.Finding, f.action.Via = args[0], "command line"
		if err := fill(args); err != nil {
			return err
		}
		return a.act(ctx, *f)
	})
	return cmd
}

// bindSpan adds the flags that say until when.
func (f *personFlags) bindSpan(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.span, "for", "", "how long, such as 90m, 2h or 3d")
	cmd.Flags().StringVar(&f.until, "until", "", "until this instant, or the start of this day")
}

func (a *app) newAcknowledge() *cobra.Command {
	f := &personFlags{action: ledger.PersonAction{Verb: recon.Acknowledge}}
	cmd := &cobra.Command{
		Use: "acknowledge ID", Short: "Say that you have seen it: nobody is called until that expires (default: 4 h)",
		Args: exactly("a finding's id"),
	}
	f.bindSpan(cmd)
	return f.bind(a, cmd, func([]string) error { return nil })
}

func (a *app) newSnooze() *cobra.Command {
	f := &personFlags{action: ledger.PersonAction{Verb: recon.Snooze}}
	cmd := &cobra.Command{
		Use: "snooze ID", Short: "Put it off until a time at most 90 days away (--for or --until)", Args: exactly("a finding's id"),
	}
	f.bindSpan(cmd)
	return f.bind(a, cmd, func([]string) error {
		if f.span == "" && f.until == "" {
			return misuse("snooze needs --for or --until: what is put off must come back")
		}
		return nil
	})
}

func (a *app) newAssign() *cobra.Command {
	f := &personFlags{action: ledger.PersonAction{Verb: recon.Assign}}
	cmd := &cobra.Command{Use: "assign ID PERSON", Short: "Say whose it is", Args: exactly("a finding's id", "a person's name")}
	return f.bind(a, cmd, func(args []string) error {
		f.action.Assignee = args[1]
		return nil
	})
}

func (a *app) newCheckNow() *cobra.Command {
	f := &personFlags{action: ledger.PersonAction{Verb: recon.CheckNow}}
	cmd := &cobra.Command{Use: "check-now ID", Short: "Have the next sweep look at its operations", Args: exactly("a finding's id")}
	return f.bind(a, cmd, func([]string) error { return nil })
}

func (a *app) newResolve() *cobra.Command {
	f := &personFlags{}
	cmd := &cobra.Command{
		Use: "resolve ID", Short: "Settle it: --as says how, --reason why", Args: exactly("a finding's id"),
		Long: "--as happened: the operation succeeded, with the effect that --effect names or that is known; it is looked up first.\n" +
			"--as did-not-happen: it failed.\n" +
			"--as release: it may be sent once more under the same key, if that is safe still.\n" +
			"--as accept: what was found stands as it is, such as a difference; an operation with an effect succeeded with it.\n" +
			"--as adopt: the effect belongs to --operation, else to a new operation.\n" +
			"--as ignore: the effect is not ours.\n" +
			"Above the configured amount, and where the provider does not confirm an effect, it becomes a proposal, which a second person ends by saying the same.",
	}
	var as, operation string
	cmd.Flags().StringVar(&as, "as", "", "one of "+words(recon.Answers))
	cmd.Flags().StringVar(&f.action.Effect, "effect", "", "the effect's id at the provider")
	cmd.Flags().StringVar(&operation, "operation", "", "which operation, where the finding names several or none")
	cmd.Flags().StringVar(&f.action.Action, "action", "", "action of the operation that adopt makes, where several fit")
	return f.bind(a, cmd, func([]string) error {
		f.action.Verb, f.action.Operation = recon.Verb(as), recon.OperationID(operation)
		if !f.action.Verb.Settles() {
			return misuse("--as %q: write one of %s", as, words(recon.Answers))
		}
		return f.reasoned("resolve")
	})
}

func (a *app) newReject() *cobra.Command {
	f := &personFlags{action: ledger.PersonAction{Verb: recon.Reject}}
	cmd := &cobra.Command{
		Use: "reject ID", Short: "Drop what somebody proposed: --reason says why; the finding stays open", Args: exactly("a finding's id"),
	}
	return f.bind(a, cmd, func([]string) error { return f.reasoned("reject") })
}

// reasoned makes sure that a decision says why.
func (f *personFlags) reasoned(verb string) error {
	if strings.TrimSpace(f.action.Reason) == "" {
		return misuse("%s needs --reason: why it is so, in your own words", verb)
	}
	return nil
}

// untilOf is the time that --for or --until means; zero when neither is given.
func untilOf(f personFlags, now time.Time, zone *time.Location) (time.Time, error) {
	switch {
	case f.span != "" && f.until != "":
		return time.Time{}, misuse("give either --for or --until")
	case f.span != "":
		d, err := recon.ParseDuration(f.span)
		if err != nil || d <= 0 {
			return time.Time{}, misuse("--for %s: write a time such as 90m, 2h or 3d", f.span)
		}
		return now.Add(d.Std()), nil
	}
	return parseInstant("until", f.until, zone, dayStart)
}

// act does what a person wants: it is they who log in at the database.
func (a *app) act(ctx context.Context, f personFlags) error {
	c, err := a.maybeConfig()
	if err != nil {
		return err
	}
	l, done, err := a.openLedger(ctx, c)
	if err != nil {
		return err
	}
	defer done()
	if _, err := l.Finding(ctx, f.action.Finding); err != nil {
		return err
	}
	now, err := a.clock(ctx, l, time.Time{})
	if err != nil {
		return err
	}
	if f.action.Until, err = untilOf(f, now(), c.Zone); err != nil {
		return err
	}
	if err := a.agreeOnPeople(ctx, l, c, now()); err != nil {
		return err
	}
	answer, err := a.desk(l, now, f.action).Do(ctx, f.action)
	if err != nil {
		return err
	}
	text := answer.Text(f.action.Verb, c.Zone)
	if answer.Outcome == ledger.PersonDone || answer.Outcome == ledger.PersonProposed {
		return a.print(answer, func(w io.Writer) error { _, err := fmt.Fprintln(w, recon.Printable(text)); return err })
	}
	if a.format == "json" {
		err = a.print(answer, nil)
	}
	return errors.Join(err, errors.New(recon.Printable(text)))
}

// agreeOnPeople makes sure that the ledger, whose rules hold, and the configuration that
// somebody names speak of the same people and limits.
func (a *app) agreeOnPeople(ctx context.Context, l *ledger.Ledger, c *config.Config, now time.Time) error {
	if len(c.People) == 0 && len(c.ApproveAbove) == 0 {
		return nil
	}
	have, err := l.People(ctx)
	if err != nil {
		return err
	}
	want := daemon.People(c)
	if slices.Equal(have.People, want.People) && maps.Equal(have.ApproveAbove, want.ApproveAbove) {
		return nil
	}
	err = l.ApplyPeople(ctx, want, now)
	var fault *ledger.Fault
	if errors.As(err, &fault) && fault.Kind == ledger.FaultPrivilege {
		return misuse("the ledger holds another list of people or limits than %s: whoever may change it runs `reconciler policy apply`, or leave --config out", c.Path)
	}
	return err
}

// desk takes what a person decides. Somebody who may settle findings need not hold the
// provider's keys: without them nothing can be looked up, and the answer says so.
func (a *app) desk(l *ledger.Ledger, now func() time.Time, action ledger.PersonAction) *sweep.Desk {
	if action.Verb != recon.Happened && action.Verb != recon.Adopt {
		return &sweep.Desk{Ledger: l, Now: now}
	}
	c, err := config.Find(a.configPath, a.env)
	if err != nil {
		fmt.Fprintf(a.err, "reconciler: no provider can be asked from here: %v\n", err)
		return &sweep.Desk{Ledger: l, Now: now}
	}
	return daemon.NewDesk(c, l, now, nil)
}
