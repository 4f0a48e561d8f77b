package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func env(pairs ...string) Env {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

const secret = "rk_live_" + "TESTONLYnotreal"

func mustParse(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse("test.yaml", []byte(text), env("KEY", secret))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var wanted = regexp.MustCompile(`(?m)^# want: (.*)$`)

func TestBadFilesAreRefusedWithTheirLine(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c, err := Parse(filepath.Base(file), text, env("KEY", secret))
			if err == nil {
				t.Fatalf("accepted: %+v", c)
			}
			wants := wanted.FindAllStringSubmatch(string(text), -1)
			if len(wants) == 0 {
				t.Fatal("the file says no # want:")
			}
			for _, w := range wants {
				if !strings.Contains(err.Error(), w[1]) {
					t.Errorf("want %q in:\n%v", w[1], err)
				}
			}
			if strings.Contains(err.Error(), "TESTONLY") {
				t.Errorf("the message shows a secret:\n%v", err)
			}
		})
	}
}

func TestTheExampleLoadsAndItsValuesAreTheDefaults(t *testing.T) {
	t.Parallel()
	c, err := Parse("example.yaml", []byte(Example), env("STRIPE_API_KEY", "rk_live_TESTONLY", "RECONCILER_DATABASE_URL", "postgres://db"))
	if err != nil {
		t.Fatal(err)
	}
	want := recon.DefaultPolicy()
	want.Action, want.Source, want.Effect, want.Class = "refund.create", "stripe-main", "refund", recon.Irreversible
	sheet := c.Sources[0].Sheet
	want.System, want.Accounts, want.Marker, want.RepeatAnswer = sheet.System, sheet.Accounts, sheet.Marker, sheet.RepeatAnswer
	want.KeyLifetime, want.Exponents = sheet.KeyLifetime, sheet.Exponents
	if diff := cmp.Diff([]recon.Policy{want}, c.Policies); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
	if c.Database.URL != "postgres://db" || c.Zone.String() != "Europe/Berlin" {
		t.Errorf("database %q, zone %v", c.Database.URL, c.Zone)
	}
	empty := mustParse(t, "")
	if c.Limits != empty.Limits || c.Tenant != empty.Tenant || c.Listen != empty.Listen ||
		c.Schedule.Sweep.Text != empty.Schedule.Sweep.Text || c.Schedule.Audit.Text != empty.Schedule.Audit.Text {
		t.Errorf("the example shows other values than the defaults")
	}
	if len(c.Notes) != 0 {
		t.Errorf("the example is noted: %v", c.Notes)
	}
}

// The example is the manual: a key that it does not tell is a key that nobody finds.
func TestTheExampleTellsEveryKey(t *testing.T) {
	t.Parallel()
	types := []reflect.Type{
		reflect.TypeFor[file](), reflect.TypeFor[Database](), reflect.TypeFor[Listen](), reflect.TypeFor[Limits](),
		reflect.TypeFor[scheduleText](), reflect.TypeFor[Person](), reflect.TypeFor[escalationSection](),
		reflect.TypeFor[step](), reflect.TypeFor[quiet](), reflect.TypeFor[fold](), reflect.TypeFor[digest](), reflect.TypeFor[Reports](), reflect.TypeFor[member](), policyType,
	}
	for _, k := range sourceKinds {
		types = append(types, reflect.TypeOf(k.settings().value).Elem())
	}
	for _, k := range destinationKinds {
		types = append(types, reflect.TypeOf(k.settings().value).Elem())
	}
	for _, typ := range types {
		for name := range fields(typ) {
			if !regexp.MustCompile(`\b` + name + `:`).MatchString(Example) {
				t.Errorf("%v: the example does not tell %s", typ, name)
			}
		}
	}
}

// The file that the contract documents is accepted, and noted what it asks in vain.
func TestTheDocumentedFileLoads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"stripe", "whsec", "test", "slack", "status_token"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x_"+name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("testdata/documented.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse("reconciler.yaml", []byte(strings.ReplaceAll(string(text), "/run/secrets", dir)), env())
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Sources) != 2 || len(c.Policies) != 1 || len(c.Destinations) != 2 || c.Limits.ChangesPerRun != 100_000 {
		t.Errorf("got %+v", c)
	}
	text, err = c.Resolve().YAML()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"before_key_expiry: 4h", "mention: oncall", "schedule: 0 8 * * *", "within: 10m", "quiet: []"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("config show does not tell %q:\n%s", want, text)
		}
	}
	if p := c.Policies[0]; p.Repeat != recon.RepeatSameKey || !p.OneOpen || p.KeyLifetime.Std() != 24*time.Hour {
		t.Errorf("policy %+v", p)
	}
	var noted []string
	for _, n := range c.Notes {
		noted = append(noted, n.Path)
	}
	want := []string{"escalation.ladders.default[1].mention", "escalation.approve_above"}
	if diff := cmp.Diff(want, noted); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

// Who looks at the ledger may not hold the daemon's secrets.
func TestWhatAsksNobodyNeedsNoSecret(t *testing.T) {
	t.Parallel()
	text := "sources:\n  - {name: a, kind: stripe, settings: {api_key: \"${NOT_SET}\"}}\n" +
		"  - {name: b, kind: stripe, settings: {api_key_file: /nowhere/key, mode: test, webhook: {secret_files: [/nowhere/hook]}}}\n" +
		"escalation: {destinations: [{name: s, kind: slack, settings: {channel: C1, token_file: /nowhere/token}}]}\n" +
		"actions: {x: {source: b, effect: refund, class: irreversible}}\n"
	name := filepath.Join(t.TempDir(), "r.yaml")
	write := func(text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(text)
	c, err := FindUnread(name, env())
	if err != nil || len(c.Sources) != 2 || len(c.Policies) != 1 || len(c.Destinations) != 1 {
		t.Errorf("unread: %+v, %v", c, err)
	}
	var faults *Faults
	if _, err := Find(name, env()); !errors.As(err, &faults) || len(faults.List) != 4 {
		t.Errorf("read: %v, want four faults", err)
	}
	write(strings.Replace(text, "\"${NOT_SET}\"", "rk_live_TESTONLY", 1))
	if _, err := FindUnread(name, env()); !errors.As(err, &faults) || len(faults.List) != 1 || !strings.Contains(err.Error(), "a secret does not stand in this file") {
		t.Errorf("a secret in the file: %v", err)
	}
}

func TestB100_SecretsStayOutOfEveryMessage(t *testing.T) {
	t.Parallel()
	const password = "hunter2TESTONLY"
	texts := []string{
		"database: {url: postgres://u:" + password + "@h/db, nope: 1}\n",
		"sources:\n  - {name: s, kind: stripe, settings: {api_key: sk_live_TESTONLY, x: 1}}\n",
		"sources:\n  - {name: s, kind: stripe, settings: {api_key: ${KEY}, per_second: ${KEY}}}\n",
		"sources:\n  - {name: s, kind: ${KEY}}\n",
		"sources:\n  - {name: s, kind: stripe, settings: {webhook: {secrets: [whsec_TESTONLY, \"\"]}}}\n",
		"sources:\n  - {name: s, kind: stripe, settings: {api_key: \"sk_live_TESTONLY\n",
		"schedule: {sweep: ${KEY}}\n",
		"zone: ${KEY}\n",
		"escalation: {destinations: [{name: a, kind: slack, settings: {token: xoxb-TESTONLY}}]}\n",
		// What no prefix gives away, in every way to write it.
		"a: {signing_secret: TESTONLY, x: 1}\n",
		"escalation: {destinations: [{name: a, kind: slack, settings: {signing_secret: TESTONLY}}]}\n",
		"escalation: {destinations: [{name: a, kind: slack, settings: {\"signing_secret\": 'TESTONLY'}}]}\n",
		"sources:\n  - name: s\n    kind: stripe\n    settings:\n      webhook:\n        secrets:\n          - TESTONLY\n          - other-TESTONLY\n",
		"sources:\n  - name: s\n    kind: stripe\n    settings:\n      webhook:\n        secrets:\n        - TESTONLY\n",
		"sources:\n  - name: s\n    kind: stripe\n    settings:\n      webhook:\n        secrets: [\n          TESTONLY,\n          other-TESTONLY]\n",
		"sources:\n  - name: s\n    kind: stripe\n    settings:\n      api_key: |\n        TESTONLY\n        more-TESTONLY\n",
		"sources:\n  - name: s\n    kind: stripe\n    settings:\n      api_key:\n        TESTONLY: 1\n",
		"sources:\n  - name: s\n    settings:\n      secrets: [TESTONLY\n",
		"sources:\n  - name: s\n    settings:\n      api_key: \"TESTONLY\n",
		"sources:\n  - name: s\n    settings:\n      secrets:\n        - 'TESTONLY\n",
	}
	for _, text := range texts {
		_, err := Parse("f.yaml", []byte(text), env("KEY", "rk_live_TESTONLY"))
		if err == nil {
			t.Errorf("accepted %q", text)
			continue
		}
		if strings.Contains(err.Error(), "TESTONLY") {
			t.Errorf("%q shows its secret:\n%v", text, err)
		}
	}
}

// The names by which excerpts know secrets are those that the settings have.
func TestB100_EveryKeyThatHoldsASecretIsKnownToExcerpts(t *testing.T) {
	t.Parallel()
	var keys []string
	var walk func(reflect.Type)
	walk = func(of reflect.Type) {
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(of.Elem())
		case reflect.Struct:
			for name, index := range fields(of) {
				field := of.FieldByIndex(index).Type
				if field == reflect.TypeFor[recon.Secret]() || field == reflect.TypeFor[[]recon.Secret]() {
					keys = append(keys, name)
					continue
				}
				walk(field)
			}
		}
	}
	for _, kind := range sourceKinds {
		walk(reflect.TypeOf(kind.settings().value))
	}
	for _, kind := range destinationKinds {
		walk(reflect.TypeOf(kind.settings().value))
	}
	if len(keys) < 5 {
		t.Errorf("only %q hold secrets", keys)
	}
	for _, key := range keys {
		for _, line := range []string{key + ": TESTONLY", "{x: 1, " + key + ": [TESTONLY, \"TESTONLY\"]}", "  \"" + key + "\" : TESTONLY"} {
			if got := excerpt([]string{line}, 0); strings.Contains(got, "TESTONLY") {
				t.Errorf("the excerpt of %q is %q", line, got)
			}
		}
	}
}

// A member that cannot be named is wrong in nothing else for that.
func TestFaultsOfSettingsAreToldOfAMemberWithoutANameToo(t *testing.T) {
	t.Parallel()
	_, err := Parse("f.yaml", []byte("sources:\n"+
		"  - {name: Not A Name, kind: stripe, settings: {nope: 1}}\n"+
		"  - {name: a, kind: stripe, settings: {api_key: ${KEY}}}\n"+
		"  - {name: a, kind: stripe, settings: {per_second: -1, api_key: ${KEY}}}\n"+
		"  - {kind: sqlite}\n"+
		"escalation:\n  destinations:\n    - {name: \"#\", kind: slack, settings: {channel: \"\", token: ${KEY}}}\n"), env("KEY", "rk_live_TESTONLY"))
	var faults *Faults
	if !errors.As(err, &faults) {
		t.Fatal(err)
	}
	var got []string
	for _, f := range faults.List {
		got = append(got, f.Path)
	}
	want := []string{"sources[0].name", "sources[0].settings.nope", "sources[2].name", "sources[2].settings.per_second", "sources[3].name", "sources[3].kind",
		"escalation.destinations[0].name", "escalation.destinations[0].settings.channel"}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults (-want +got):\n%s\n%v", diff, err)
	}
}

func TestB100_TheShownConfigurationHoldsNoSecret(t *testing.T) {
	t.Parallel()
	c, err := Parse("r.yaml", []byte("database: {url: ${DB}}\nsources:\n  - {name: s, kind: stripe, settings: {api_key: ${KEY}, webhook: {secrets: [\"${HOOK}\"]}}}\n"+
		"escalation: {destinations: [{name: a, kind: slack, settings: {channel: C012345, token: ${TOKEN}}}]}\n"),
		env("KEY", "sk_live_TESTONLY", "HOOK", "whsec_TESTONLY", "TOKEN", "xoxb-TESTONLY", "DB", "postgres://u:TESTONLY@h/db?password=TESTONLY"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := c.Resolve().YAML()
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{string(text), fmt.Sprintf("%v %+v %#v", c.Sources, c.Sources[0].settings, c.Destinations[0].settings)} {
		if strings.Contains(shown, "TESTONLY") {
			t.Errorf("shows a secret:\n%s", shown)
		}
	}
	if !strings.Contains(string(text), `signing_secret: ""`) {
		t.Errorf("a secret that is not set is not shown as none:\n%s", text)
	}
	for _, want := range []string{`api_key: "[redacted]"`, "url: postgres://u:xxxxx@h/db?password=xxxxx", "key_lifetime: 24h", "marks: []"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("want %q in:\n%s", want, text)
		}
	}
}

func TestMaskURLHidesPasswordsOfEveryForm(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"postgres://u:p4ss@h/db":             "postgres://u:xxxxx@h/db",
		"postgres://u@h/db":                  "postgres://u@h/db",
		"host=h user=u password=p4ss":        "host=h user=u password=xxxxx",
		"host=h password='p4ss word' user=u": "host=h password=xxxxx user=u",
		"postgres://u:p4ss%@h/db":            "[redacted]",
		"postgres://u@h/db?sslpassword=p4ss": "postgres://u@h/db?sslpassword=xxxxx",
		"host=h sslpassword = p4ss":          "host=h sslpassword = xxxxx",
		"local:/var/lib/x":                   "local:/var/lib/x",
		"":                                   "",
	} {
		if got := MaskURL(in); got != want {
			t.Errorf("MaskURL(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestTheFileIsFoundByFlagThenVariableThenDefault(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"flag", "variable", "reconciler"} {
		if err := os.WriteFile(name+".yaml", []byte("tenant: "+name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	named := env("RECONCILER_CONFIG", "variable.yaml")
	for _, tt := range []struct {
		name, flag string
		env        Env
		want       string
	}{
		{"the flag goes first", "flag.yaml", named, "flag"},
		{"then the variable", "", named, "variable"},
		{"then the default", "", env(), "reconciler"},
	} {
		c, err := Find(tt.flag, tt.env)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if c.Tenant != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, c.Tenant, tt.want)
		}
	}
	if err := os.Remove("reconciler.yaml"); err != nil {
		t.Fatal(err)
	}
	c, err := Find("", env())
	if err != nil || c.Path != "" || c.Tenant != "default" {
		t.Errorf("without any file: %+v, %v", c, err)
	}
	for _, e := range []Env{env("RECONCILER_CONFIG", "gone.yaml")} {
		if _, err := Find("", e); err == nil || !strings.Contains(err.Error(), "gone.yaml (named by RECONCILER_CONFIG)") {
			t.Errorf("named and missing: %v", err)
		}
	}
	if _, err := Find("gone.yaml", env()); err == nil || !strings.Contains(err.Error(), "--config") {
		t.Errorf("named and missing: %v", err)
	}
}

func TestSpecsAreUTCUnlessTheySayAZone(t *testing.T) {
	t.Parallel()
	c := mustParse(t, "schedule: {sweep: \"0 3 * * *\", audit: CRON_TZ=Europe/Berlin 0 3 * * *, reverify: off}\n")
	now := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	if got := c.Schedule.Sweep.Next(now).UTC(); got.Hour() != 3 {
		t.Errorf("sweep at %v", got)
	}
	if got := c.Schedule.Audit.Next(now).UTC(); got.Hour() != 1 {
		t.Errorf("audit at %v", got)
	}
	// The hour that is repeated in autumn is one tick.
	zoned := mustParse(t, "schedule: {sweep: CRON_TZ=America/New_York 30 1 * * *}\n").Schedule.Sweep
	first := time.Date(2026, 11, 1, 5, 30, 0, 0, time.UTC)
	if a, b := zoned.Tick(first), zoned.Tick(first.Add(time.Hour)); a != b || a != "2026-11-01T01:30 America/New_York" {
		t.Errorf("ticks %q and %q", a, b)
	}
	if !c.Schedule.Reverify.Off() || !c.Schedule.Reverify.Next(now).IsZero() {
		t.Error("reverify is not off")
	}
}

func TestDeepNestingIsRefusedBeforeItIsParsed(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"flow lists":    "a: " + strings.Repeat("[", maxFile-10),
		"flow mappings": "a: " + strings.Repeat("{a: ", 50_000),
		"dashes":        strings.Repeat("- ", 100_000),
		"one a line":    strings.Repeat("[\n", 100_000),
		"huge":          strings.Repeat("# x\n", maxFile),
	} {
		start := time.Now()
		if _, err := Parse("f", []byte(text), env()); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s: took %v", name, took)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(Example)
	files, _ := filepath.Glob("testdata/*/*.yaml")
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil {
			f.Add(string(text))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse("f.yaml", []byte(text), env("STRIPE_API_KEY", "rk_live_TESTONLYzz", "KEY", "TESTONLYzz"))
		if err != nil {
			if strings.Contains(err.Error(), "TESTONLYzz") {
				t.Fatalf("shows a secret: %v", err)
			}
			return
		}
		for _, p := range c.Policies {
			if s, ok := c.Source(p.Source); !ok || s.Open == nil {
				t.Fatalf("policy %s has no source", p.Action)
			}
			if p.LeaseMax.Std() <= 0 || len(p.Checks) == 0 || p.Absence.Looks < 1 {
				t.Fatalf("policy %+v would sweep for ever or never", p)
			}
		}
		if c.Schedule.Sweep.Text == "" {
			t.Fatal("no schedule and not off")
		}
	})
}

// What the example shows behind # is valid once it is taken out of the comment.
func TestTheSourcesThatTheExampleCommentsOutAreValid(t *testing.T) {
	t.Parallel()
	_, block, ok := strings.Cut(Example, "  # - name: bank-giro\n")
	block, _, end := strings.Cut(block, "\n\n")
	if !ok || !end {
		t.Fatal("the example shows no source of kind files")
	}
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("TESTONLY_token"), 0o600); err != nil {
		t.Fatal(err)
	}
	block = regexp.MustCompile(`/run/secrets/\w+`).ReplaceAllString(block, token)
	text := "sources:\n  - name: bank-giro\n" + regexp.MustCompile(`(?m)^  # ( |- )`).ReplaceAllString(block, "  $1")
	c := mustParse(t, text)
	if len(c.Sources) != 4 || c.Sources[0].Kind != "files" || c.Sources[0].Format.Name != "giro-export" || c.Sources[0].Sheet.System != "giro" {
		t.Errorf("got %+v", c.Sources)
	}
	kinds := c.Sources[0].Sheet.Kinds
	if diff := cmp.Diff([]string{"transfer"}, kinds); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
	for i, kind := range map[int]string{1: "email", 2: "ticket", 3: "credit_note"} {
		if got := c.Sources[i].Sheet.Kinds; !slices.Equal(got, []string{kind}) || c.Sources[i].Format.Name != "jsonl" {
			t.Errorf("%s observes %v and imports %s, want %s and jsonl", c.Sources[i].Name, got, c.Sources[i].Format.Name, kind)
		}
	}
}
