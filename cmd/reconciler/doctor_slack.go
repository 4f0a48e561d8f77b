package main

import (
	"context"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/escalation/slack"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
)

// probeWithin bounds what one destination is asked.
const probeWithin = 10 * time.Second

// destinationAdvice asks the destinations that can be asked whether they would take a
// message. Nothing is sent.
func destinationAdvice(ctx context.Context, c *config.Config) []ledger.Advice {
	var list []ledger.Advice
	for _, dest := range c.Destinations {
		about := "destination " + dest.Name
		n, err := dest.Open(c.Zone)
		app, can := n.(*slack.Notifier)
		if err == nil && !can {
			continue
		}
		var access slack.Access
		if err == nil {
			probing, cancel := context.WithTimeout(ctx, probeWithin)
			access, err = app.Probe(probing)
			cancel()
		}
		if err != nil {
			list = append(list, ledger.Advice{Level: ledger.Faulty, About: about, Text: err.Error()})
			continue
		}
		switch {
		case access.Closed != "":
			list = append(list, faulty(about, "%s", access.Closed))
		case len(access.Lacks) == 0:
			list = append(list, good(about, "Slack takes messages of %s", access.Who))
		}
		for _, lack := range access.Lacks {
			list = append(list, ledger.Advice{Level: ledger.Warning, About: about, Text: lack})
		}
	}
	return list
}
