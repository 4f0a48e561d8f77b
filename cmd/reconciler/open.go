package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/daemon"
	"github.com/seed-1c4f4dc2/reconciler/internal/localpg"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const (
	localPrefix   = "local:"
	localDatabase = "reconciler"
	// stopWithin bounds the end of a trial server.
	stopWithin = 10 * time.Second
)

// maybeConfig reads the configuration where there is one, for a verb that asks no
// provider: a person who looks at the ledger may not hold the daemon's secrets.
func (a *app) maybeConfig() (*config.Config, error) {
	return config.FindUnread(a.configPath, a.env)
}

// needConfig reads the configuration, secrets included, of a verb that cannot do
// without.
func (a *app) needConfig(verb string) (*config.Config, error) {
	return a.needed(verb, config.Find)
}

// needed reads a configuration that must be there.
func (a *app) needed(verb string, find func(string, config.Env) (*config.Config, error)) (*config.Config, error) {
	c, err := find(a.configPath, a.env)
	if err != nil {
		return nil, err
	}
	if c.Path == "" {
		return nil, misuse("%s needs a configuration and %s is not there: name one with --config or RECONCILER_CONFIG, "+
			"or write one with `reconciler config example > %s`", verb, config.DefaultPath, config.DefaultPath)
	}
	return c, nil
}

// database gives the address of the ledger. No verb but demo ever makes one up: a lost
// variable must not end in a sweep of an empty ledger.
func (a *app) database(c *config.Config) (string, error) {
	url := a.databaseURL
	if url == "" {
		url, _ = a.env("RECONCILER_DATABASE_URL")
	}
	if url == "" {
		url = c.Database.URL
	}
	if url == "" {
		return "", misuse("no database is named: set RECONCILER_DATABASE_URL, give --database-url, " +
			"or write database.url into the configuration (local:DIR is a trial server that is started for you)")
	}
	return url, nil
}

// server resolves local:DIR to a running trial server. The returned function ends what
// was started.
func (a *app) server(ctx context.Context, url string) (string, func(), error) {
	dir, local := strings.CutPrefix(url, localPrefix)
	if !local {
		return url, func() {}, nil
	}
	if dir == "" {
		return "", nil, misuse("local: needs a directory: write local:DIR")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", nil, fmt.Errorf("find %s: %w", dir, err)
	}
	s, err := localpg.Start(ctx, localpg.Options{Dir: dir})
	if err != nil {
		return "", nil, err
	}
	stop := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			fmt.Fprintln(a.err, "reconciler: "+err.Error())
		}
	}
	if err := s.CreateDatabase(ctx, localDatabase); err != nil {
		stop()
		return "", nil, err
	}
	fmt.Fprintf(a.err, "reconciler: trial server in %s, not for real money; while this runs: psql '%s'\n", dir, s.URL(localDatabase))
	return s.URL(localDatabase), stop, nil
}

// openLedger opens the ledger that flag, variable or configuration name. The returned
// function closes it.
func (a *app) openLedger(ctx context.Context, c *config.Config) (*ledger.Ledger, func(), error) {
	url, err := a.database(c)
	if err != nil {
		return nil, nil, err
	}
	url, stop, err := a.server(ctx, url)
	if err != nil {
		return nil, nil, err
	}
	l, err := ledger.Open(ctx, ledger.Options{URL: url, Tenant: tenantOf(c)})
	if err != nil {
		stop()
		return nil, nil, err
	}
	return l, func() { l.Close(); stop() }, nil
}

// tenantOf is the tenant that a configuration expects; without one the database role
// alone says it.
func tenantOf(c *config.Config) string {
	if c.Path == "" {
		return ""
	}
	return c.Tenant
}

// clock gives the time that decisions are judged by: the database's, as it goes on, or
// the instant that --now fixes.
func (a *app) clock(ctx context.Context, l *ledger.Ledger, fixed time.Time) (func() time.Time, error) {
	if fixed.IsZero() {
		return daemon.Clock(ctx, l)
	}
	real, err := l.Now(ctx)
	if err != nil {
		return nil, err
	}
	if ahead := fixed.Sub(real); ahead > time.Minute {
		fmt.Fprintf(a.err, "reconciler: --now is %s ahead of the database's clock: looks count as made then, before what is still under way can be seen; "+
			"for trials, and for real money only with --dry-run\n", recon.Duration(ahead.Round(time.Second)).Text())
	}
	return func() time.Time { return fixed }, nil
}

// holder names this process to others.
func holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}
