package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/daemon"
)

func newServeCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon: scheduled sweeps, webhooks, notices, metrics and health, until SIGTERM",
		Long: "Starts, and says so, while providers, Slack and even the database are out of reach. " +
			"/metrics, /healthz and /readyz answer on listen.private; providers deliver to /webhooks/SOURCE and Slack to /slack/actions on " +
			"listen.public, which is open where a source has a webhook secret or a Slack destination its signing secret. SIGHUP reads the configuration again: actions, people, schedule, reports, escalation and limits " +
			"change at once, and what cannot change without a restart, or is wrong, is named and changes nothing. A second signal ends it at once.",
		Args: exactly(),
		RunE: a.verb(a.serve),
	}
}

func (a *app) serve(ctx context.Context, _ []string) error {
	c, err := a.needConfig("serve")
	if err != nil {
		return err
	}
	url, err := a.database(c)
	if err != nil {
		return err
	}
	url, stop, err := a.server(ctx, url)
	if err != nil {
		return err
	}
	defer stop()
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	return daemon.Run(ctx, daemon.Options{
		Config: c, DatabaseURL: url, Tenant: tenantOf(c), Holder: holder(), Log: a.logger(),
		Reload: reload, Load: func() (*config.Config, error) { return a.needConfig("serve") },
	})
}
