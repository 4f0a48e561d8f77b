package packagetest

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// image is what the container file makes, built once for all tests: the folder that is the
// root of the container.
var image struct {
	dir  string
	file *containerFile
}

// release is the version that the image is built as.
const release = "9.8.7-test"

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "image")
	if err == nil {
		defer os.RemoveAll(dir)
		image.dir = filepath.Join(dir, "root")
		image.file, err = build(dir, image.dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// program is the program of the image.
func program() string { return filepath.Join(image.dir, "reconciler") }

func TestTheProgramIsStaticAndSaysItsVersion(t *testing.T) {
	f, err := elf.Open(program())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("the program has a %s section: it needs a loader, and the image has none", p.Type)
		}
	}
	text, err := os.ReadFile(program())
	if err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte(here)) {
		t.Errorf("the program holds the builder's path %s", here)
	}
	var version struct{ Version, Go string }
	if err := json.Unmarshal(run(t, nil, "version", "--format", "json"), &version); err != nil || version.Version != release {
		t.Errorf("it says %+v, want version %s: %v", version, release, err)
	}
}

// `make build` builds as the image does, so that what is true of one is true of the other.
func TestMakeBuildsAsTheImageDoes(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "make", "--no-print-directory", "-C", root, "-n", "build", "VERSION="+release).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var line string
	for _, run := range image.file.stages[0].runs {
		if strings.Contains(run, "go build") {
			line = run
		}
	}
	for _, flag := range []string{"CGO_ENABLED=0", "-trimpath", "-tags timetzdata", "-s -w", "-X main.release="} {
		if !strings.Contains(line, flag) || !strings.Contains(string(out), flag) {
			t.Errorf("%s is not in both:\n%s\n%s", flag, line, out)
		}
	}
}

// run runs the program outside of the image.
func run(t *testing.T, environ []string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(), args...)
	cmd.Env = environ
	out, err := cmd.Output()
	if err != nil {
		var said []byte
		if exit, ok := err.(*exec.ExitError); ok {
			said = exit.Stderr
		}
		t.Fatalf("reconciler %v: %v\n%s%s", args, err, out, said)
	}
	return out
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
