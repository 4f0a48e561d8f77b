package localpg

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseMajor(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		version string
		want    int
	}{
		{"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n", 15},
		{"postgres (PostgreSQL) 17.2\n", 17},
		{"postgres (PostgreSQL) 18beta1\n", 18},
		{"postgres (PostgreSQL) 19devel", 19},
		{"postgres (EnterpriseDB) 16", 16},
		{"postgres", 0},
		{"postgres (PostgreSQL) ", 0},
		{"", 0},
	} {
		got, err := parseMajor(test.version)
		if got != test.want || (err == nil) != (test.want != 0) {
			t.Errorf("parseMajor(%q) = %d, %v; want %d", test.version, got, err, test.want)
		}
	}
}

func FuzzParseMajor(f *testing.F) {
	f.Add("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n")
	f.Fuzz(func(t *testing.T, version string) {
		major, err := parseMajor(version)
		if err == nil && !strings.Contains(version, fmt.Sprint(major)) {
			t.Errorf("parseMajor(%q) = %d", version, major)
		}
	})
}

func TestPickPrograms(t *testing.T) {
	t.Parallel()
	p14, p15, p17 := programs{"/pg/14", 14}, programs{"/pg/15", 15}, programs{"/pg/17", 17}
	for _, test := range []struct {
		name  string
		have  []programs
		major int
		want  programs
		fault string
	}{
		{"the newest serves new data", []programs{p15, p17, p14}, 0, p17, ""},
		{"data is served by its own version", []programs{p17, p15}, 15, p15, ""},
		{"data of a version that is not here is refused", []programs{p17}, 15, programs{}, "install PostgreSQL 15"},
		{"a version that is too old is refused", []programs{p14}, 0, programs{}, "15 or later is needed"},
		{"no programs at all", nil, 0, programs{}, installCommand()},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := pickPrograms(test.have, test.major)
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if test.fault == "" && err != nil || test.fault != "" && (err == nil || !strings.Contains(err.Error(), test.fault)) {
				t.Errorf("error %v, want one with %q", err, test.fault)
			}
		})
	}
}

func TestMissingProgramsAreTellable(t *testing.T) {
	t.Parallel()
	if _, err := pickPrograms(nil, 0); !errors.Is(err, ErrNoPostgres) {
		t.Errorf("error %v does not wrap ErrNoPostgres", err)
	}
}

func TestBinVariableIsTheOnlyPlaceLookedAt(t *testing.T) {
	empty := t.TempDir()
	t.Setenv(BinVariable, empty)
	_, err := Find(t.Context())
	if err == nil || !strings.Contains(err.Error(), BinVariable) || !strings.Contains(err.Error(), empty) {
		t.Errorf("error does not name the variable and its value: %v", err)
	}

	folder := t.TempDir()
	for name, script := range map[string]string{
		"postgres": "#!/bin/sh\necho 'postgres (PostgreSQL) 99.1'\n",
		"initdb":   "#!/bin/sh\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(BinVariable, folder)
	if got, err := Find(t.Context()); err != nil || got != folder {
		t.Errorf("Find() = %s, %v; want %s", got, err, folder)
	}
}
