package examples_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/internal/loopback"
)

// The session of the README: two lost answers, an export, and the daemon closes what the
// export proves, while other verbs ask the same ledger.
func TestTheDaemonCanBeTriedWithoutAnAccount(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "trial.yaml")
	text, err := os.ReadFile("configurations/trial.yaml")
	if err != nil {
		t.Fatal(err)
	}
	given := strings.NewReplacer("127.0.0.1:8080", loopback.FreeAddress(t), "127.0.0.1:9464", loopback.FreeAddress(t), "out: trial-reports", "out: "+t.TempDir())
	if err := os.WriteFile(config, []byte(given.Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newStand(t, config, "TRIAL", nil)
	s.run(nil, "operations", "import", "compare/operations.jsonl")
	s.run(nil, "import", "--source", "stripe-main", "--from", "2026-03-02", "--to", "2026-03-02", "compare/stripe_balance.csv")

	ctx, stop := context.WithCancel(t.Context())
	daemon := exec.CommandContext(ctx, s.program, "serve", "--config", config)
	daemon.Env, daemon.Cancel, daemon.WaitDelay = s.env, func() error { return daemon.Process.Signal(os.Interrupt) }, 20*time.Second
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	for wait := time.Now().Add(time.Minute); s.state("op_1001") == "unknown" && time.Now().Before(wait); {
		time.Sleep(200 * time.Millisecond)
	}
	s.want(map[string]string{"op_1001": "succeeded re_A1", "op_1003": "manual_review"})
	s.run(nil, "audit", "--from", "2026-03-02", "--to", "2026-03-02")
	if got := s.findings(); got["duplicate"] != 1 || got["mismatch"] != 1 || got["orphan"] != 1 || got["missing"] != 1 || len(got) != 4 {
		t.Errorf("findings are %v", got)
	}
	s.run(nil, "report", "--day", "2026-03-02", "--out", t.TempDir())
	stop()
	if err := daemon.Wait(); daemon.ProcessState.ExitCode() != 0 {
		t.Errorf("the daemon ended with %v", err)
	}
}
