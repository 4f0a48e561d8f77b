package packagetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	unitsDir = "../systemd"
	// exposure is the most that systemd's review may find, of 100. What is left is that the
	// service talks to the network.
	exposure = "20"
)

// systemd judges the units as installed, with the drop-ins that hold for them.
func systemd(t *testing.T, args ...string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(unitsDir)); err != nil {
		t.Fatal(err)
	}
	units, err := filepath.Glob(filepath.Join(dir, "*.service"))
	if err != nil {
		t.Fatal(err)
	}
	for _, unit := range units {
		// The program stands elsewhere here.
		write(t, unit, strings.ReplaceAll(read(t, unit), "/usr/local/bin/reconciler", program()))
	}
	for i, arg := range args {
		if strings.HasPrefix(arg, "reconciler-") {
			args[i] = filepath.Join(dir, arg)
		}
	}
	cmd := exec.CommandContext(t.Context(), "systemd-analyze", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":", "SYSTEMD_PAGER=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("systemd-analyze %v: %v; run `make deps`\n%s", args, err, out)
	}
	if args[0] == "verify" && strings.Contains(string(out), "reconciler") {
		t.Errorf("systemd-analyze %v says:\n%s", args, out)
	}
}

func TestSystemdTakesTheUnits(t *testing.T) {
	systemd(t, "verify", "--man=no", "reconciler-serve.service", "reconciler-run@sweep.service", "reconciler-sweep.timer", "reconciler-audit.timer", "reconciler-reverify.timer")
}

func TestTheServicesAreWalledIn(t *testing.T) {
	for _, unit := range []string{"reconciler-serve.service", "reconciler-run@audit.service"} {
		systemd(t, "security", "--offline=true", "--no-pager", "--threshold="+exposure, unit)
	}
}

// The daemon is started again whatever it died of, has time to end, and takes a new
// configuration; the credentials of the units are those that the example reads.
func TestTheUnitsFitTheProgram(t *testing.T) {
	serve := read(t, filepath.Join(unitsDir, "reconciler-serve.service"))
	for _, line := range []string{"Restart=always", "StartLimitIntervalSec=0", "TimeoutStopSec=20s", "ExecReload=/bin/kill -HUP $MAINPID"} {
		if !slices.Contains(strings.Split(serve, "\n"), line) {
			t.Errorf("reconciler-serve.service has no line %s", line)
		}
	}
	common := read(t, filepath.Join(unitsDir, "reconciler-.service.d/10-common.conf"))
	example := read(t, filepath.Join(root, "examples/configurations/systemd.yaml"))
	loaded := found(`(?m)^LoadCredential=([a-z_]+):`, common)
	used := append(found(`\$\{CREDENTIALS_DIRECTORY\}/([a-z_]+)`, example), found(`passfile=%d/([a-z_]+)`, common)...)
	slices.Sort(loaded)
	slices.Sort(used)
	if !slices.Equal(loaded, used) {
		t.Errorf("the units load %v, and what is read is %v", loaded, used)
	}
	help := string(run(t, nil, "help"))
	timers, err := filepath.Glob(filepath.Join(unitsDir, "*.timer"))
	if err != nil || len(timers) == 0 {
		t.Fatalf("%d timers: %v", len(timers), err)
	}
	for _, timer := range timers {
		verb := found(`Unit=reconciler-run@([a-z]+)\.service`, read(t, timer))
		if len(verb) != 1 || !strings.Contains(help, "\n  "+verb[0]+" ") {
			t.Errorf("%s starts %v, which is no verb of the program", timer, verb)
		}
	}
}

func found(pattern, text string) []string {
	var all []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}
