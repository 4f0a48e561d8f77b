package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// healthWithin is how long the daemon may take to answer; readiness itself waits for the
// database for less.
const healthWithin = 5 * time.Second

func newHealthCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask the daemon on this machine whether it is alive, or ready",
		Long: "Asks listen.private of the configuration, for images that hold no other program. Exit 1: it does not answer, or is not ready.\n" +
			"An orchestrator should restart what is not alive, and only keep deliveries from what is not ready: a restart brings no database back.",
		Args: exactly(),
	}
	ready := cmd.Flags().Bool("ready", false, "whether it is ready: it has read the ledger and the database answers")
	cmd.RunE = a.verb(func(ctx context.Context, _ []string) error { return a.health(ctx, *ready) })
	return cmd
}

func (a *app) health(ctx context.Context, ready bool) error {
	c, err := a.maybeConfig()
	if err != nil {
		return err
	}
	url, err := healthURL(c.Listen.Private, ready)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, healthWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("ask %s: %w", url, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("the daemon does not answer: %w; is `reconciler serve` running with this configuration?", err)
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	if err != nil {
		return fmt.Errorf("read the daemon's answer: %w", err)
	}
	answer := struct {
		URL    string `json:"url"`
		OK     bool   `json:"ok"`
		Answer string `json:"answer"`
	}{url, resp.StatusCode == http.StatusOK, strings.TrimSpace(string(said))}
	if !answer.OK {
		line, _, _ := strings.Cut(answer.Answer, "\n") // another program's page has many
		return fmt.Errorf("%s answers %s: %s", url, resp.Status, line)
	}
	return a.print(answer, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, answer.Answer)
		return err
	})
}

// healthURL is where the daemon of this machine answers. One that listens on every address
// does so on the loopback too.
func healthURL(listen string, ready bool) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", misuse("listen.private %q: write HOST:PORT", listen)
	}
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	path := "/healthz"
	if ready {
		path = "/readyz"
	}
	return "http://" + net.JoinHostPort(host, port) + path, nil
}
