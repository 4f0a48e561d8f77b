package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
)

const (
	runbooks   = "../../docs/runbooks"
	alertRules = "../../deploy/prometheus/reconciler.rules.yml"
)

// alert is what the rules say of one alert.
type alert struct {
	Alert       string            `yaml:"alert"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func alerts(t *testing.T) map[string]alert {
	t.Helper()
	text, err := os.ReadFile(alertRules)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []alert `yaml:"rules"`
		} `yaml:"groups"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	all := map[string]alert{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if r.Alert != "" {
				all[r.Alert] = r
			}
		}
	}
	return all
}

func TestEveryAlertHasItsRunbookAndEveryRunbookItsAlert(t *testing.T) {
	t.Parallel()
	all := alerts(t)
	if len(all) < 11 {
		t.Errorf("%d alerts", len(all))
	}
	pages, err := filepath.Glob(filepath.Join(runbooks, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if name := strings.TrimSuffix(filepath.Base(page), ".md"); all[name].Alert == "" {
			t.Errorf("%s belongs to no alert", page)
		}
	}
	for name, a := range all {
		if want := "https://github.com/seed-1c4f4dc2/reconciler/blob/main/docs/runbooks/" + name + ".md"; a.Annotations["runbook_url"] != want {
			t.Errorf("%s: runbook_url %q, want %s", name, a.Annotations["runbook_url"], want)
		}
		if s := a.Labels["severity"]; s != "warning" && s != "critical" {
			t.Errorf("%s: severity %q", name, s)
		}
		text, err := os.ReadFile(filepath.Join(runbooks, name+".md"))
		if err != nil {
			t.Error(err)
			continue
		}
		headings := regexp.MustCompile(`(?m)^#+ .*$`).FindAllString(string(text), -1)
		if diff := cmp.Diff([]string{"# " + name, "## What it means", "## Look first", "## What to do", "## When it ends"}, headings); diff != "" {
			t.Errorf("%s.md: headings (-want +got):\n%s", name, diff)
		}
		if len(commandsOf(string(text))) == 0 {
			t.Errorf("%s.md has no command to type", name)
		}
	}
}

// What a page tells to type: in blocks of shell, and in the text between backticks.
var (
	shellBlock = regexp.MustCompile("(?ms)^ *```sh\n(.*?)```")
	inlineCode = regexp.MustCompile("`(reconciler [^`]+)`")
)

func commandsOf(page string) []string {
	var all []string
	for _, block := range shellBlock.FindAllStringSubmatch(page, -1) {
		for line := range strings.Lines(block[1]) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "reconciler ") {
				all = append(all, line)
			}
		}
	}
	for _, code := range inlineCode.FindAllStringSubmatch(page, -1) {
		all = append(all, code[1])
	}
	return all
}

func TestRunbooksTellCommandsThatThereAre(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(filepath.Join(runbooks, "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range commandsOf(string(text)) {
			if fault := faultOf(command); fault != "" {
				t.Errorf("%s: %s: %s", filepath.Base(page), command, fault)
			}
		}
		for _, link := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(runbooks, link[1])); err != nil {
				t.Errorf("%s: %v", filepath.Base(page), err)
			}
		}
	}
	for _, wrong := range []string{"reconciler sweeep", "reconciler findings settle ID", "reconciler sweep --sources x", "reconciler findings show", "reconciler findings resolve ID --as done"} {
		if faultOf(wrong) == "" {
			t.Errorf("%s passes as a command", wrong)
		}
	}
}

// faultOf says what is wrong with a command as somebody would type it.
func faultOf(command string) string {
	words := regexp.MustCompile(`"[^"]*"|\S+`).FindAllString(command, -1)[1:]
	for i, w := range words {
		words[i] = strings.Trim(w, `"`)
	}
	root := newRoot(&app{streams: streams{in: strings.NewReader(""), out: &bytes.Buffer{}, err: &bytes.Buffer{}}})
	cmd, args, err := root.Find(words)
	if err != nil {
		return err.Error()
	}
	if !cmd.Runnable() || cmd.HasSubCommands() {
		return "it names a group of commands, not one"
	}
	if err := cmd.ParseFlags(args); err != nil {
		return err.Error()
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		return err.Error()
	}
	as := cmd.Flags().Lookup("as")
	if as != nil && !strings.Contains(cmd.Flags().Lookup("as").Usage, as.Value.String()) {
		return "no such answer: " + as.Value.String()
	}
	return ""
}
