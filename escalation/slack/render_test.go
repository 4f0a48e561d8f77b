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

func TestAnswersLookAsAgreed(t *testing.T) {
	t.Parallel()
	all := messages(t)
	n := &Notifier{zone: time.UTC, settings: Settings{Mentions: map[string]string{"oncall": "S0123456789"}}, people: map[string]string{"ana": "T1/U1AB"}}
	hour := all["unresolved"]
	hour.Step, hour.Reason, hour.Mention = "after 1 h", escalation.StepDue, []string{"oncall", "ana", "here", "nobody <!channel>"}
	hour.Now = at(t, "03:13:32")
	over := all["acknowledged"]
	over.Step, over.Reason = "still open at 2026-03-01T02:13:32Z", escalation.PauseOver
	ended := all["ended"]
	ended.Step, ended.Reason, ended.Mention = "after 1 h", escalation.StepDue, []string{"oncall"}
	crowd := all["outage"]
	crowd.Step, crowd.Reason, crowd.Mention = "after 1 h", escalation.StepDue, []string{"oncall"}
	for name, m := range map[string]escalation.Message{"answer_step": hour, "answer_pause_over": over, "answer_ended_meanwhile": ended, "answer_outage": crowd} {
		r := n.reply(m)
		blocks := encode(t, r.Blocks)
		if word := slacktest.Refusal(r.Text, blocks); word != "" {
			t.Errorf("%s: Slack refuses it: %s", name, word)
		}
		golden(t, name+".txt", []byte(r.Text+"\n---\n"+slacktest.Message{Text: r.Text, Blocks: blocks}.Plain()+"\n"))
	}
}

// A click decides on what the person saw, so a button says which finding in which
// version; without a signing secret nobody's click could be believed.
func TestButtonsFitWhatIsSo(t *testing.T) {
	t.Parallel()
	all := messages(t)
	for name, change := range map[string]func(s *recon.Story){
		"imported":  func(s *recon.Story) { s.Kept = false },
		"used_up":   func(s *recon.Story) { s.Operation.Attempts = s.Policy.PerOperation },
		"too_near":  func(s *recon.Story) { s.Operation.KeyExpiresAt = at(t, "02:45:00") },
		"same_fate": func(s *recon.Story) { s.Operation.LastClass = recon.ClassStoredError },
	} {
		m := unknownRefund(t)
		change(&m.Story)
		all[name] = m
	}
	tests := []struct{ message, want string }{
		{"imported", "acknowledge check_now snooze assign happened did-not-happen"},
		{"used_up", "acknowledge check_now snooze assign happened did-not-happen"},
		{"too_near", "acknowledge check_now snooze assign happened did-not-happen"},
		{"same_fate", "acknowledge check_now snooze assign happened did-not-happen"},
		{"unresolved", "acknowledge check_now snooze assign happened did-not-happen release"},
		{"unresolved_repeat_key_over", "acknowledge check_now snooze assign happened did-not-happen"},
		{"missing", "acknowledge check_now snooze assign happened did-not-happen release"},
		{"mismatch", "acknowledge check_now snooze assign"},
		{"B02_orphan", "acknowledge snooze assign adopt ignore"},
		{"ended", ""},
		{"outage", ""},
		{"digest", ""},
	}
	for _, tt := range tests {
		var got []string
		r := (&Notifier{zone: time.UTC, settings: Settings{SigningSecret: recon.NewSecret("x")}}).render(all[tt.message])
		for _, b := range r.Blocks {
			a, ok := b.(*slackgo.ActionBlock)
			if !ok {
				continue
			}
			for _, e := range a.Elements.ElementSet {
				button := e.(*slackgo.ButtonBlockElement)
				got = append(got, button.ActionID)
				var carries Button
				if err := json.Unmarshal([]byte(button.Value), &carries); err != nil || carries != (Button{all[tt.message].About.ID, all[tt.message].About.Version}) {
					t.Errorf("%s: %s carries %q", tt.message, button.ActionID, button.Value)
				}
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: buttons %v, want %s", tt.message, got, tt.want)
		}
		if b := string(encode(t, shown(all[tt.message]))); strings.Contains(b, "action_id") {
			t.Errorf("%s: buttons without a signing secret", tt.message)
		}
	}
}

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
	m.Next = &escalation.Upcoming{At: m.Now, To: hostile(rt, "next"), Mention: hostile(rt, "mention")}
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

// hostileCrowd is a message about many with texts of strangers.
func hostileCrowd(rt *rapid.T) escalation.Message {
	s := func(label string) string { return hostile(rt, label) }
	i := recon.Incident{ID: s("id"), Source: recon.SourceName(s("source")), Kind: rapid.SampledFrom(append(recon.FindingKinds, recon.FindingKind(s("kind")))).Draw(rt, "kind"),
		Fault: s("fault"), Total: rapid.Int().Draw(rt, "total"), Open: rapid.Int().Draw(rt, "open"), KeyExpires: time.Unix(rapid.Int64Range(0, 1e10).Draw(rt, "key"), 0)}
	for range rapid.IntRange(0, 60).Draw(rt, "currencies") {
		i.Money = append(i.Money, recon.Money{Minor: rapid.Int64().Draw(rt, "minor"), Currency: s("currency")})
	}
	for range rapid.IntRange(0, 10).Draw(rt, "members") {
		i.Top = append(i.Top, recon.Member{Finding: i.ID, Operation: recon.OperationID(i.ID), Target: i.Fault, Money: recon.Money{Minor: 5, Currency: string(i.Source)}})
	}
	if rapid.Bool().Draw(rt, "ended") {
		i.EndedAt = time.Unix(1e9, 0)
	}
	return escalation.Message{Incident: &i, Refused: s("refused"), Mention: []string{s("mention")}, Step: s("step"), Act: recon.ActTell}
}

// hostileReport is a report all of whose texts are from outside.
func hostileReport(rt *rapid.T, m escalation.Message) escalation.Message {
	text := rapid.SampledFrom([]string{"<!channel>", "<@U1>", "*a*_b_`c`", strings.Repeat("&<>", 900), "\n\u202e", strings.Repeat("長", 3000), ""})
	s := func(label string) string { return text.Draw(rt, label) }
	r := recon.DayReport{Day: s("day"), Zone: s("zone"), Verdict: s("verdict"), Page: s("page"), Operations: 1 << 40, Effects: 1 << 40, MoreGaps: 7}
	for range rapid.IntRange(0, 40).Draw(rt, "lines") {
		r.Gaps = append(r.Gaps, s("gap"))
		r.Findings = append(r.Findings, recon.DayFindings{Kind: recon.FindingKind(s("kind")), Open: 1 << 40})
		r.Money = append(r.Money, recon.DayMoney{Currency: s("currency"), Count: 1 << 40, Minor: -1 << 62, DoneMinor: 1 << 62})
	}
	m.Incident, m.Report = nil, &r
	return m
}

func TestB31_NoMessageAboutManyIsOverSlacksLimits(t *testing.T) {
	t.Parallel()
	n := &Notifier{zone: time.UTC, settings: Settings{SigningSecret: recon.NewSecret("x")}}
	rapid.Check(t, func(rt *rapid.T) {
		m := hostileCrowd(rt)
		d := m
		d.Incident, d.Digest = nil, &recon.Digest{Day: "2026-03-01", Down: []recon.SourceName{m.Incident.Source}, Undelivered: m.Incident.Open}
		for range rapid.IntRange(0, 60).Draw(rt, "kinds") {
			d.Digest.Kinds = append(d.Digest.Kinds, recon.DigestKind{Kind: m.Incident.Kind, Open: m.Incident.Open, Money: m.Incident.Money})
		}
		for _, r := range []rendered{n.render(m), n.render(d), n.render(hostileReport(rt, m)), n.reply(m), n.reply(unknownTo(rt))} {
			total := 0
			for _, x := range texts(r) {
				total += utf8.RuneCountInString(x.Text)
			}
			if len(r.Blocks) == 0 || len(r.Blocks) > maxBlocks || total > maxTotal {
				rt.Fatalf("%d blocks, %d characters", len(r.Blocks), total)
			}
			b, err := json.Marshal(r.Blocks)
			if err != nil {
				rt.Fatal(err)
			}
			if word := slacktest.Refusal(r.Text, b); word != "" {
				rt.Fatalf("refused: %s\n%s", word, b)
			}
			checkHarmless(rt, r)
		}
	})
}

// unknownTo is a message about an effect of strangers that no operation explains.
func unknownTo(rt *rapid.T) escalation.Message {
	e := recon.Effect{ID: hostile(rt, "effect"), Kind: hostile(rt, "kind"), Parent: hostile(rt, "parent"), CreatedBy: hostile(rt, "by"), Target: hostile(rt, "target"),
		Reference: hostile(rt, "reference"), Account: hostile(rt, "account"), Money: recon.Money{Minor: 5, Currency: hostile(rt, "currency")}}
	f := recon.Finding{ID: hostile(rt, "id"), Kind: recon.FindOrphan, Source: recon.SourceName(hostile(rt, "source")), Reason: hostile(rt, "reason")}
	for range rapid.IntRange(0, 60).Draw(rt, "effects") {
		f.Effects = append(f.Effects, e.Ref())
	}
	return escalation.Message{About: f, Assignee: hostile(rt, "assignee"), Story: recon.Story{Effects: []recon.Effect{e, e, e, e, e, e, e}}}
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
