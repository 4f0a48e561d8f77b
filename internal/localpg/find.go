package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// MinMajor is the oldest major version of PostgreSQL that the schema works on.
const MinMajor = 15

// BinVariable names the environment variable that says where PostgreSQL's programs
// are. When it is set nothing else is looked at.
const BinVariable = "RECONCILER_PG_BIN"

// ErrNoPostgres means that this machine has no usable PostgreSQL programs. The error
// that wraps it names the one command that installs them.
var ErrNoPostgres = errors.New("PostgreSQL's programs were not found")

// usualFolders are where the packages of Debian and Ubuntu, Fedora and RHEL, Homebrew
// (Apple and Intel processors), Postgres.app and Alpine put the programs.
var usualFolders = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/opt/homebrew/opt/postgresql*/bin",
	"/usr/local/opt/postgresql*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
	"/usr/libexec/postgresql*",
}

// programs are one installation: a folder with initdb and postgres of one version.
type programs struct {
	folder string
	major  int
}

// Find returns the folder of the newest installed PostgreSQL programs that are recent
// enough. The error of a machine that has none wraps [ErrNoPostgres] and names the
// command that installs them.
func Find(ctx context.Context) (string, error) {
	found, err := findPrograms(ctx, 0)
	if err != nil {
		return "", err
	}
	return found.folder, nil
}

// findPrograms returns the programs of the given major version, or the newest ones if
// major is 0.
func findPrograms(ctx context.Context, major int) (programs, error) {
	var folders []string
	if folder := os.Getenv(BinVariable); folder != "" {
		folders = []string{folder}
	} else {
		folders = candidateFolders()
	}

	var all []programs
	var faults []error
	for _, folder := range folders {
		found, err := inspect(ctx, folder)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		all = append(all, found)
	}
	if os.Getenv(BinVariable) != "" && len(all) == 0 {
		return programs{}, fmt.Errorf("%s: %w", BinVariable, errors.Join(faults...))
	}
	return pickPrograms(all, major)
}

// pickPrograms chooses among what is installed.
func pickPrograms(all []programs, major int) (programs, error) {
	var best programs
	for _, p := range all {
		switch {
		case major != 0 && p.major == major:
			return p, nil
		case p.major > best.major:
			best = p
		}
	}
	switch {
	case best.major == 0:
		return programs{}, fmt.Errorf("%w; install them: %s (or set %s)", ErrNoPostgres, installCommand(), BinVariable)
	case major != 0:
		return programs{}, fmt.Errorf("the data is of PostgreSQL %d, the newest programs here are of %d (%s); install PostgreSQL %d, "+
			"or move the data with pg_upgrade or pg_dump", major, best.major, best.folder, major)
	case best.major < MinMajor:
		return programs{}, fmt.Errorf("%w: PostgreSQL %d or later is needed, the newest here is %d (%s); install it: %s (or set %s)",
			ErrNoPostgres, MinMajor, best.major, best.folder, installCommand(), BinVariable)
	}
	return best, nil
}

// candidateFolders lists folders that hold a postgres program: the one on PATH, with
// its links followed, since Debian links single programs into /usr/bin, and the usual
// ones.
func candidateFolders() []string {
	var folders []string
	if path, err := exec.LookPath("postgres"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			folders = append(folders, filepath.Dir(real))
		}
	}
	for _, pattern := range usualFolders {
		matches, err := filepath.Glob(pattern)
		if err != nil {
			panic("localpg: bad pattern " + pattern) // Unreachable unless the list above is wrong.
		}
		for _, folder := range matches {
			if _, err := os.Stat(filepath.Join(folder, "postgres")); err == nil {
				folders = append(folders, folder)
			}
		}
	}
	return folders
}

// inspect asks the programs of a folder for their version.
func inspect(ctx context.Context, folder string) (programs, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return programs{}, fmt.Errorf("folder of PostgreSQL's programs: %w", err)
	}
	if _, err := os.Stat(filepath.Join(folder, "initdb")); err != nil {
		return programs{}, fmt.Errorf("%s holds no initdb: %w", folder, err)
	}
	out, err := exec.CommandContext(ctx, filepath.Join(folder, "postgres"), "--version").Output()
	if err != nil {
		return programs{}, fmt.Errorf("ask %s/postgres for its version: %w", folder, err)
	}
	major, err := parseMajor(string(out))
	if err != nil {
		return programs{}, fmt.Errorf("%s/postgres: %w", folder, err)
	}
	return programs{folder: folder, major: major}, nil
}

// parseMajor reads "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", and also
// "18beta1" and "17devel".
func parseMajor(version string) (int, error) {
	_, rest, ok := strings.Cut(version, ") ")
	if !ok {
		return 0, fmt.Errorf("not a version of PostgreSQL: %q", strings.TrimSpace(version))
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(rest)
	}
	major, err := strconv.Atoi(rest[:end])
	if err != nil {
		return 0, fmt.Errorf("not a version of PostgreSQL: %q", strings.TrimSpace(version))
	}
	return major, nil
}

// installCommand is the one command that installs the programs on this machine.
func installCommand() string {
	if runtime.GOOS == "darwin" {
		return "brew install postgresql@17"
	}
	sudo := ""
	if os.Geteuid() != 0 {
		sudo = "sudo "
	}
	for _, manager := range []struct{ program, command string }{
		{"apt-get", "apt-get install -y postgresql"},
		{"dnf", "dnf install -y postgresql-server"},
		{"apk", "apk add postgresql"},
		{"pacman", "pacman -S --noconfirm postgresql"},
		{"zypper", "zypper install -y postgresql-server"},
	} {
		if _, err := exec.LookPath(manager.program); err == nil {
			return sudo + manager.command
		}
	}
	return sudo + "apt-get install -y postgresql"
}
