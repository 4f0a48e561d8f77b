//go:build e2e

package restore_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-1c4f4dc2/reconciler/internal/localpg"
)

// The steps of docs/backup.md, in its order.
const (
	stepBackup = iota
	stepRestore
	stepCheck
	stepHold
	stepAudit
	stepOrphans
	stepLetGo
	steps
)

// page gives the commands of docs/backup.md, one text a step.
func page(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/backup.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	var block []string
	inside := false
	for _, line := range strings.Split(string(text), "\n") {
		switch line := strings.TrimPrefix(line, "   "); {
		case line == "```sh":
			inside, block = true, nil
		case line == "```" && inside:
			inside, blocks = false, append(blocks, strings.Join(block, "\n"))
		case inside:
			block = append(block, line)
		}
	}
	if len(blocks) != steps {
		t.Fatalf("docs/backup.md has %d blocks of commands, and this test knows %d steps", len(blocks), steps)
	}
	return blocks
}

// built is the folder of the program, which all tests of this package share.
var built string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	var err error
	if built, err = os.MkdirTemp("", "reconciler"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(built)
	if out, err := exec.Command("go", "build", "-o", filepath.Join(built, "reconciler"), "../../cmd/reconciler").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// desk is where somebody follows the page: a folder, the programs, and the addresses.
type desk struct {
	*testing.T
	dir  string
	path string
	page []string
	env  []string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	bin, err := localpg.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{T: t, dir: t.TempDir(), page: page(t)}
	d.path = strings.Join([]string{built, bin, os.Getenv("PATH")}, string(os.PathListSeparator))
	return d
}

// follow runs a step of the page and gives what it prints on standard output.
func (d *desk) follow(step int) string {
	d.Helper()
	out, err := d.sh(d.page[step])
	if err != nil {
		d.Fatalf("docs/backup.md: %v\n%s\n%s", err, d.page[step], out)
	}
	return out
}

// reconciler runs a verb.
func (d *desk) reconciler(args string) string {
	d.Helper()
	out, err := d.sh("reconciler " + args)
	if err != nil {
		d.Fatalf("reconciler %s: %v\n%s", args, err, out)
	}
	return out
}

func (d *desk) sh(commands string) (string, error) {
	cmd := exec.CommandContext(d.Context(), "sh", "-euc", commands)
	cmd.Dir = d.dir
	cmd.Env = append(append(os.Environ(), "PATH="+d.path), d.env...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return string(out) + said.String(), err
	}
	return string(out), nil
}
