package slack

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/escalation/slack/slacktest"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// clicked makes a trigger and an address as a click brings them.
func clicked(t *testing.T, s *slacktest.Server, by slacktest.Person) Action {
	t.Helper()
	body, err := s.Click(slacktest.Press{By: by, Channel: "payments-recon", TS: "1.000001", Action: "happened", Value: `{"finding":"f1","version":3}`})
	if err != nil {
		t.Fatal(err)
	}
	a, err := ParseAction(body)
	if err != nil || a.Sort != Click {
		t.Fatalf("%+v, %v", a, err)
	}
	return a
}

var somebody = slacktest.Person{Team: "T1", User: "U1"}

// steering is text as nobody should be able to write it.
const steering = "<!channel> <https://evil.example|click> &amp; *bold* `code` \x00\x1b[31m\u202e"

func TestEveryFormIsOneThatSlackTakes(t *testing.T) {
	t.Parallel()
	s := workspace(t, slacktest.Options{})
	n := notifier(t, s, "#payments-recon")
	long := strings.Repeat("ж<&", 5000)
	people := []string{"ana", steering, long}
	for i := range 200 {
		people = append(people, fmt.Sprintf("person %d", i))
	}
	proposal := &recon.Proposal{Verb: recon.Happened, Person: steering, Reason: long, Two: recon.TwoForAmount, Effect: strings.Repeat("e", 1024), Operation: "op_1"}
	for verb := range titles {
		for name, f := range map[string]Form{
			"short": {About: []string{"nobody knows yet whether it happened"}, People: []string{"ana"}},
			"long":  {About: []string{steering, long, long}, Effect: long, People: people, Answer: s.URL() + strings.Repeat("x", 3000)},
		} {
			f.Verb, f.Button, f.Person = verb, Button{Finding: "f1", Version: 3}, "ana"
			if verb == Approve || verb == recon.Reject {
				f.Proposal = proposal
			}
			if err := n.Open(t.Context(), clicked(t, s, somebody).Trigger, f); err != nil {
				t.Errorf("%s, %s: %v", verb, name, err)
			}
		}
	}
	forms := s.Forms()
	if len(forms) != 2*len(titles) {
		t.Fatalf("%d forms are open, want two for each of %d verbs", len(forms), len(titles))
	}
	for _, f := range forms {
		var view any
		if err := json.Unmarshal(f.View, &view); err != nil {
			t.Fatal(err)
		}
		for _, shown := range shownTexts(view) {
			if strings.ContainsAny(shown, "<>\x00\x1b\u202e") {
				t.Errorf("shows a text that steers: %q", shown)
			}
		}
		if strings.Contains(string(f.View), "mrkdwn") {
			t.Errorf("reads text as formatting:\n%s", f.View)
		}
	}
}

// shownTexts are those that a form shows.
func shownTexts(of any) []string {
	var list []string
	switch of := of.(type) {
	case []any:
		for _, v := range of {
			list = append(list, shownTexts(v)...)
		}
	case map[string]any:
		for k, v := range of {
			if s, ok := v.(string); ok && k == "text" {
				list = append(list, s)
			}
			list = append(list, shownTexts(v)...)
		}
	}
	return list
}

func TestAFormComesBackAsItWasMeant(t *testing.T) {
	t.Parallel()
	s := workspace(t, slacktest.Options{})
	n := notifier(t, s, "#payments-recon")
	anew := &recon.Proposal{Verb: recon.Adopt, Person: "ana", Reason: "It is ours.", Two: recon.TwoForAmount, Effect: "re_1", Action: "refund.create"}
	proposal := &recon.Proposal{Verb: recon.Adopt, Person: "ana", Reason: "It is ours.", Two: recon.TwoForAmount, Effect: "re_1", Operation: "op_1"}
	tests := []struct {
		form   Form
		fields map[string]string
		verb   recon.Verb
		effect string
		typed  string
		action string
	}{
		{Form{Verb: recon.Happened, Effect: "re_0"}, map[string]string{"reason": "x", "effect": "re_2"}, recon.Happened, "re_2", "effect", ""},
		{Form{Verb: recon.Adopt}, map[string]string{"reason": "x", "operation": "op_9"}, recon.Adopt, "", "operation", ""},
		{Form{Verb: recon.Release}, map[string]string{"reason": "x"}, recon.Release, "", "", ""},
		{Form{Verb: recon.Snooze}, map[string]string{"for": "=4h"}, recon.Snooze, "", "", ""},
		{Form{Verb: Approve, Proposal: proposal}, map[string]string{"reason": "x"}, recon.Adopt, "re_1", "", ""},
		{Form{Verb: Approve, Proposal: anew}, map[string]string{"reason": "x"}, recon.Adopt, "re_1", "", "refund.create"},
		{Form{Verb: recon.Reject, Proposal: proposal}, map[string]string{"reason": "x"}, recon.Reject, "", "", ""},
	}
	for _, tt := range tests {
		a := clicked(t, s, somebody)
		tt.form.Button, tt.form.Answer = a.Button, a.Answer
		if err := n.Open(t.Context(), a.Trigger, tt.form); err != nil {
			t.Fatal(err)
		}
		forms := s.Forms()
		body, err := forms[len(forms)-1].Submission(tt.fields)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseAction(body)
		if err != nil || got.Sort != Submission || got.Verb != tt.verb || got.Entry.Effect != tt.effect || got.Entry.Action != tt.action || got.Button != a.Button ||
			got.Answer != a.Answer || got.Entry.Typed(got.Verb) != tt.typed || len(got.Entry.Faults(got.Verb)) > 0 {
			t.Errorf("%s comes back as %+v, %v", tt.form.Verb, got, err)
		}
	}
}

func TestATriggerOpensOneFormAndSlacksOwnWordsAreKept(t *testing.T) {
	t.Parallel()
	s := workspace(t, slacktest.Options{})
	n := notifier(t, s, "#payments-recon")
	f := Form{Verb: recon.Release, Button: Button{Finding: "f1", Version: 1}, About: []string{"x"}}
	a := clicked(t, s, somebody)
	if err := n.Open(t.Context(), a.Trigger, f); err != nil {
		t.Fatal(err)
	}
	var e *escalation.Error
	if err := n.Open(t.Context(), a.Trigger, f); !errors.As(err, &e) || e.Code != "exchanged_trigger_id" {
		t.Errorf("the second time: %v", err)
	}
	s.Spoil(slacktest.Fault{Method: "views.open", Status: 503})
	if err := n.Open(t.Context(), clicked(t, s, somebody).Trigger, f); err == nil || strings.Contains(err.Error(), "TESTONLY") {
		t.Errorf("while Slack is down: %v", err)
	}
}

func TestPeopleAreToldAloneAndOnlyAtSlack(t *testing.T) {
	t.Parallel()
	s := workspace(t, slacktest.Options{})
	n := notifier(t, s, "#payments-recon")
	a := clicked(t, s, somebody)
	if err := n.Tell(t.Context(), a.Answer, steering+strings.Repeat("x", 5000)); err != nil {
		t.Fatal(err)
	}
	if told := s.Told(); len(told) != 1 || told[0].To != somebody || !strings.HasPrefix(told[0].Text, "<!channel> <https") {
		t.Errorf("told: %+v", told)
	}
	for _, address := range []string{"", "http://169.254.169.254/latest", "https://hooks.slack.com.evil.example/1", "https://evil.example/hooks.slack.com",
		"http://hooks.slack.com/1", "https://user@hooks.slack.com/1", "file:///etc/passwd", "::"} {
		if n.ours(address) {
			t.Errorf("%q is called", address)
		}
	}
	if !n.ours("https://hooks.slack.com/actions/T1/1/x") {
		t.Error("Slack's own address is not called")
	}
	if err := n.Open(t.Context(), a.Trigger, Form{Verb: recon.Release, Button: a.Button, About: []string{"x"}}); err != nil {
		t.Fatal(err)
	}
	if err := n.Show(t.Context(), s.Forms()[0].ID, "Done by ana."); err != nil {
		t.Fatal(err)
	}
	var view map[string]any
	if err := json.Unmarshal(s.Forms()[0].View, &view); err != nil || !strings.Contains(s.Forms()[0].Plain(), "Done by ana.") || view["submit"] != nil {
		t.Errorf("the form shows %s (%v)", s.Forms()[0].View, err)
	}
	if err := n.Show(t.Context(), "V404", "x"); err == nil {
		t.Error("a form that was closed shows something")
	}
}

// Each form as a person sees it, and one as Slack gets it.
func TestFormsReadAsTheyShould(t *testing.T) {
	t.Parallel()
	s := workspace(t, slacktest.Options{})
	n := notifier(t, s, "#payments-recon")
	about := []string{"nobody knows yet whether it happened", "Refund of 42.00 EUR for order:77, unknown", "operation op_77"}
	proposal := &recon.Proposal{Verb: recon.Happened, Person: "ana", Reason: "It is in the dashboard.", Two: recon.TwoForAmount, Effect: "re_4417"}
	var all []string
	for _, verb := range []recon.Verb{recon.Snooze, recon.Assign, recon.Happened, recon.DidNotHappen, recon.Release, recon.Adopt, recon.Ignore, Approve, recon.Reject} {
		f := Form{Verb: verb, Button: Button{Finding: "f1", Version: 3}, About: about, Person: "ana", People: []string{"ana", "bob"}, Answer: "https://hooks.slack.com/actions/1"}
		if verb == Approve || verb == recon.Reject {
			f.Proposal = proposal
		}
		if err := n.Open(t.Context(), clicked(t, s, somebody).Trigger, f); err != nil {
			t.Fatal(err)
		}
		forms := s.Forms()
		all = append(all, forms[len(forms)-1].Plain())
		if verb == recon.Happened {
			var b bytes.Buffer
			if err := json.Indent(&b, forms[len(forms)-1].View, "", "  "); err != nil {
				t.Fatal(err)
			}
			golden(t, "form_happened.json", append(b.Bytes(), '\n'))
		}
	}
	golden(t, "forms.txt", []byte(strings.Join(all, "\n\n")+"\n"))
}
