package slack

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	slackgo "github.com/slack-go/slack"
	"pgregory.net/rapid"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/escalation/slack/slacktest"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

var update = flag.Bool("update", false, "write the golden files anew")

func encode(t testing.TB, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestMessagesLookAsAgreed(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range messages(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := (&Notifier{zone: berlin, settings: Settings{SigningSecretFile: "/run/secrets/signing"}}).render(m)
			blocks := encode(t, r.Blocks)
			golden(t, name+".json", encode(t, r))
			golden(t, name+".txt", []byte(slacktest.Message{Text: r.Text, Blocks: blocks}.Plain()+"\n"))
		})
	}
}

// shown renders a message as a destination without settings of its own does.
func shown(m escalation.Message) rendered { return (&Notifier{zone: time.UTC}).render(m) }

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s differs (write it anew with -update):\n%s", path, d)
	}
}

func TestB100_NoSecretOrPersonalDataInAMessage(t *testing.T) {
	t.Parallel()
	for name, m := range messages(t) {
		b := string(encode(t, shown(m)))
		for _, leak := range []string{"jane", "Jane", "key-that-nobody"} {
			if strings.Contains(b, leak) {
				t.Errorf("%s shows %q", name, leak)
			}
		}
	}
}

// texts gives every text of a message with its type.
func texts(r rendered) []slackgo.TextBlockObject {
	list := []slackgo.TextBlockObject{{Type: slackgo.PlainTextType, Text: r.Text}}
	for _, b := range r.Blocks {
		switch b := b.(type) {
		case *slackgo.HeaderBlock:
			list = append(list, *b.Text)
		case *slackgo.SectionBlock:
			if b.Text != nil {
				list = append(list, *b.Text)
			}
			for _, f := range b.Fields {
				list = append(list, *f)
			}
		}
	}
	return list
}

// hostile draws text that a stranger may have written.
func hostile(t *rapid.T, label string) string {
	s := rapid.OneOf(
		rapid.String(),
		rapid.SampledFrom([]string{
			"", "<!channel>", "<https://evil.example|click>", "*bold* _it_ ~s~ `code`", "```", "&lt;!here&gt;", "@here #general",
			"a\x00b\u202e", "'; rm -rf / #", "\xff\xfe", ":smile:",
		}),
	).Draw(t, label)
	return strings.Repeat(s, rapid.SampledFrom([]int{1, 2, 60, 1500}).Draw(t, label+" times"))
}

func hostileMessage(rt *rapid.T, m escalation.Message) escalation.Message {
	o := &m.Story.Operation
	o.ID = recon.OperationID(hostile(rt, "id"))
	o.Target, o.Parent, o.EffectID = hostile(rt, "target"), hostile(rt, "parent"), hostile(rt, "effect")
	o.Source, o.Account, o.Mode = recon.SourceName(hostile(rt, "source")), hostile(rt, "account"), hostile(rt, "mode")
	o.Action = hostile(rt, "action")
	o.Money = recon.Money{Minor: rapid.Int64().Draw(rt, "minor"), Currency: hostile(rt, "currency")}
	o.State = rapid.SampledFrom(append(recon.States, "")).Draw(rt, "state")
	m.Story.Policy.Effect = hostile(rt, "kind")
	m.About.Kind = rapid.SampledFrom(append(recon.FindingKinds, recon.FindingKind(hostile(rt, "finding")))).Draw(rt, "finding kind")
	m.About.Reason, m.About.Ending = hostile(rt, "reason"), hostile(rt, "ending")
	m.About.Money = o.Money
	if rapid.Bool().Draw(rt, "ended") {
		m.About.State = recon.FindingEnded
	}
	m.Repeat = rapid.Bool().Draw(rt, "repeat")
	n := rapid.IntRange(0, 73).Draw(rt, "how many")
	m.Story.Findings = []recon.Finding{m.About}
	outcome := rapid.SampledFrom([]recon.Outcome{recon.Found, recon.Absent, recon.Blind}).Draw(rt, "outcome")
	for range n {
		m.About.Effects = append(m.About.Effects, recon.EffectRef{Kind: o.Action, ID: o.Parent})
		m.About.Observed = append(m.About.Observed, recon.Difference{Field: o.Target, Ours: o.Parent, Theirs: o.EffectID})
		l := m.Story.Looks[0]
		l.Parent, l.Reference, l.Source, l.Fault = o.Parent, "", o.Source, o.Action
		l.Outcome = outcome
		m.Story.Looks = append(m.Story.Looks, l)
		f := m.About
		f.Kind, f.Source, f.Effects, f.Observed = recon.FindMismatch, o.Source, nil, nil
		m.Story.Findings = append(m.Story.Findings, f)
	}
	return m
}

func TestB31_NoMessageIsOverSlacksLimits(t *testing.T) {
	t.Parallel()
	base := unknownRefund(t)
	rapid.Check(t, func(rt *rapid.T) {
		m := base
		m.Story.Looks = append([]recon.Look(nil), base.Story.Looks...)
		r := shown(hostileMessage(rt, m))
		if len(r.Blocks) == 0 || len(r.Blocks) > maxBlocks {
			rt.Fatalf("%d blocks", len(r.Blocks))
		}
		total := 0
		for _, x := range texts(r) {
			total += utf8.RuneCountInString(x.Text)
		}
		if total > maxTotal {
			rt.Fatalf("%d characters in all", total)
		}
		b, err := json.Marshal(r.Blocks)
		if err != nil {
			rt.Fatal(err)
		}
		if word := slacktest.Refusal(r.Text, b); word != "" {
			rt.Fatalf("refused: %s\n%s", word, b)
		}
		checkHarmless(rt, r)
	})
}

// checkHarmless fails when something from outside could act: a control character of
// Slack's that is not escaped, or mrkdwn outside a code span that is not ours.
func checkHarmless(t interface{ Fatalf(string, ...any) }, r rendered) {
	for _, x := range texts(r) {
		if strings.ContainsAny(x.Text, "<>") {
			t.Fatalf("%q holds a control character", x.Text)
		}
		rest := strings.NewReplacer("&amp;", "", "&lt;", "", "&gt;", "").Replace(x.Text)
		if strings.Contains(rest, "&") {
			t.Fatalf("%q holds a & that is not escaped", x.Text)
		}
		if !utf8.ValidString(x.Text) || strings.ContainsAny(x.Text, "\x00\u202e\r") {
			t.Fatalf("%q holds characters that steer", x.Text)
		}
		if x.Type == slackgo.MarkdownType {
			spans := strings.Split(x.Text, "`")
			if len(spans)%2 == 0 {
				t.Fatalf("%q opens a code span and does not close it", x.Text)
			}
			for i := 0; i < len(spans); i += 2 { // outside the code spans
				if strings.Count(spans[i], "*")%2 != 0 || strings.ContainsAny(spans[i], "~") || strings.Contains(spans[i], "://") {
					t.Fatalf("%q stands outside a code span", spans[i])
				}
			}
		}
	}
}

func FuzzEscaping(f *testing.F) {
	for _, s := range []string{"<!channel>", "&", "`x`", "a\x00", "<https://e|x>", strings.Repeat("&", 5000)} {
		f.Add(s, 50)
	}
	f.Fuzz(func(t *testing.T, s string, max int) {
		max = 4 + int(uint(max)%10000)
		for _, got := range []string{plain(s, max), code(s, max), lines([]string{s, s, s}, max)} {
			checkHarmless(t, rendered{Text: got})
		}
		if n := utf8.RuneCountInString(plain(s, max)); n > max {
			t.Fatalf("%d characters, at most %d", n, max)
		}
		if got := code(s, max); s != "" && strings.Count(got, "`") != 2 {
			t.Fatalf("%q is not one code span", got)
		}
	})
}

func TestAnIDIsPastedIntoAShellAsOneWord(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, id, want string }{
		{"a UUID", "0195500a-7c1e-7000-8000-00000000a417", "reconciler operations show 0195500a-7c1e-7000-8000-00000000a417"},
		{"a shell's characters are quoted", "op; rm -rf /", "reconciler operations show 'op; rm -rf /'"},
		{"a dollar is quoted", "op$(id)", "reconciler operations show 'op$(id)'"},
		{"an id like a flag", "-x", "reconciler operations show -- -x"},
		{"a quote cannot be pasted", "op'x", "reconciler operations list"},
		{"a back-tick cannot be shown", "op`id`", "reconciler operations list"},
		{"a line break cannot be shown", "op\nrm", "reconciler operations list"},
		{"an invisible character cannot be shown", "op\u200b1", "reconciler operations list"},
		{"a long one cannot be shown", strings.Repeat("&", 1024), "reconciler operations list"},
	}
	for _, tt := range tests {
		if got := command(recon.OperationID(tt.id)); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
