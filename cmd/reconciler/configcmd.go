package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/seed-1c4f4dc2/reconciler/config"
)

func newConfigCommand(a *app) *cobra.Command {
	return group("config", "Check, show or write the configuration",
		&cobra.Command{
			Use: "check", Short: "Read the configuration and its secrets, and tell every fault with its line, or what each action rests on", Args: exactly(),
			RunE: a.verb(a.configCheck),
		},
		&cobra.Command{
			Use: "show", Short: "Print the configuration as it is used, with defaults filled in and secrets redacted", Args: exactly(),
			RunE: a.verb(a.configShow),
		},
		&cobra.Command{
			Use: "example", Short: "Print an annotated configuration that holds every key", Args: exactly(),
			RunE: a.verb(func(context.Context, []string) error {
				_, err := io.WriteString(a.out, config.Example)
				return err
			}),
		},
	)
}

func (a *app) configCheck(context.Context, []string) error {
	c, err := a.needConfig("config check")
	if err != nil {
		return err
	}
	r := c.Resolve()
	answer := struct {
		File     string    `json:"file"`
		OK       bool      `json:"ok"`
		Sources  int       `json:"sources"`
		Actions  int       `json:"actions"`
		Notes    []string  `json:"notes"`
		Footings []footing `json:"footings"`
	}{r.File, true, len(r.Sources), len(r.Actions), r.Notes, footingsOf(c)}
	return a.print(answer, func(w io.Writer) error {
		for _, n := range answer.Notes {
			if _, err := fmt.Fprintln(w, "note: "+n); err != nil {
				return err
			}
		}
		for _, f := range answer.Footings {
			if _, err := fmt.Fprintf(w, "action: %s\n", f); err != nil {
				return err
			}
		}
		verdict := "is right"
		if answer.Actions == 0 {
			verdict = "has no fault, and nothing will be looked at"
		}
		_, err := fmt.Fprintf(w, "%s %s: %s, %s\n", answer.File, verdict, count(answer.Sources, "source"), count(answer.Actions, "action"))
		return err
	})
}

func (a *app) configShow(context.Context, []string) error {
	c, err := a.needConfig("config show")
	if err != nil {
		return err
	}
	r := c.Resolve()
	return a.print(r, func(w io.Writer) error {
		text, err := r.YAML()
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	})
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
