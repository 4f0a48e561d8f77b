package httpapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/httpapi"
	"github.com/seed-1c4f4dc2/reconciler/sources/httpapi/httpapitest"
)

const serverToken = "TESTONLY-server"

// post is the fake Postmark on a clock of its own.
type post struct {
	*clock
	*httpapitest.Postmark
	change func(*httpapi.PostmarkSettings)
}

func newPost(t *testing.T, change func(*httpapi.PostmarkSettings)) post {
	t.Helper()
	// Half an hour before New York's clocks go back.
	c := &clock{now: time.Date(2026, 11, 1, 5, 30, 0, 0, time.UTC)}
	p := post{clock: c, Postmark: httpapitest.StartPostmark(c.Now), change: change}
	t.Cleanup(p.Close)
	return p
}

func (p post) settings() httpapi.PostmarkSettings {
	set := httpapi.PostmarkSettings{
		APIURL: p.URL, Marker: "op_id", PerSecond: 100_000,
		Servers: []httpapi.PostmarkServer{{Account: "letters", Token: recon.NewSecret(serverToken)}},
	}
	if p.change != nil {
		p.change(&set)
	}
	return set
}

func (p post) open(t *testing.T) *httpapi.Source {
	t.Helper()
	src, err := httpapi.NewPostmark("postmark", p.settings(), httpapi.Options{Transport: bare})
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func (p post) letter(operation string) string {
	return p.Send(httpapitest.Letter{Server: serverToken, To: []string{"Jane@example.com"}, Subject: "Your refund", Metadata: map[string]string{"op_id": operation}})
}

func (p post) ask(t *testing.T, change ...func(*sources.Question)) sources.Answer {
	t.Helper()
	q := sources.Question{Operation: "op-1", Kind: "email", Account: "letters", Mode: "live", Marks: []recon.Mark{recon.MarkReference}, From: p.Now().Add(-time.Hour)}
	for _, c := range change {
		c(&q)
	}
	ans, err := p.open(t).Ask(t.Context(), []sources.Question{q}, p.Now)
	if err != nil {
		t.Fatal(err)
	}
	return ans
}

func TestPostmarkLettersGoThroughTheirStates(t *testing.T) {
	for name, test := range map[string]struct {
		queued bool
		events []string
		want   recon.EffectStatus
	}{
		"queued":                           {true, nil, recon.InFlight},
		"sent, and nothing heard":          {false, nil, recon.Completed},
		"opened":                           {false, []string{"Delivered", "Opened"}, recon.Completed},
		"bounced":                          {false, []string{"Bounced"}, recon.EffectFailed},
		"delivered":                        {false, []string{"Delivered"}, recon.Completed},
		"bounced, then delivered":          {false, []string{"Bounced", "Delivered"}, recon.Completed},
		"delivered, then bounced":          {false, []string{"Delivered", "Bounced"}, recon.Reversed},
		"delivered, bounced and delivered": {false, []string{"Delivered", "Bounced", "Delivered"}, recon.Reversed},
		"complained of":                    {false, []string{"Delivered", "SpamComplaint"}, recon.Completed},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPost(t, nil)
			id := p.Send(httpapitest.Letter{Server: serverToken, To: []string{"jane@example.com"}, Queued: test.queued, Metadata: map[string]string{"op_id": "op-1"}})
			for _, e := range test.events {
				p.Advance(time.Minute)
				p.Log(id, e)
			}
			for way, change := range map[string]func(*sources.Question){"by reference": func(*sources.Question) {}, "by id": withID(id)} {
				ans := p.ask(t, change)
				if len(ans.Effects) != 1 || ans.Effects[0].Status != test.want || ans.Effects[0].Reference != "op-1" || ans.Effects[0].ID != id {
					t.Errorf("%s: effects are %+v, want %s as %s (%+v)", way, ans.Effects, id, test.want, ans.Looks)
				}
			}
			page, err := p.open(t).Page(t.Context(), sources.List{Kind: "email", Account: "letters", Mode: "live"},
				recon.Window{From: p.Now().Add(-time.Hour), To: p.Now().Add(time.Second)}, "", func() time.Time { return p.Now().Add(2 * time.Second) })
			if err != nil || len(page.Effects) != 1 || page.Effects[0].Status != test.want {
				t.Errorf("listed: %+v with %v, want one as %s", page.Effects, err, test.want)
			}
		})
	}
}

// Whatever befalls a question, a letter that is there is never absent.
func TestPostmarkThatDoesNotAnswerIsBlind(t *testing.T) {
	for _, fault := range httpapitest.Faults {
		t.Run(string(fault), func(t *testing.T) {
			p := newPost(t, func(s *httpapi.PostmarkSettings) { s.Lag = recon.Duration(time.Minute) })
			id := p.letter("op-1")
			p.Advance(time.Hour)
			src, err := httpapi.NewPostmark("postmark", p.settings(), httpapi.Options{Transport: bare, Timeout: 300 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			p.Break(fault, 0)
			for way, effect := range map[string]string{"by reference": "", "by id": id} {
				ans, err := src.Ask(t.Context(), []sources.Question{{
					Operation: "op-1", Kind: "email", Account: "letters", Mode: "live", EffectID: effect, Marks: []recon.Mark{recon.MarkReference}, From: p.Now().Add(-2 * time.Hour),
				}}, p.Now)
				if err != nil || len(ans.Looks) == 0 || len(ans.Effects) != 0 || slices.ContainsFunc(ans.Looks, func(l recon.Look) bool { return l.Outcome != recon.Blind }) {
					t.Errorf("%s: %+v with %v, want nothing but blind looks", way, ans, err)
				}
			}
			p.Mend()
			if ans := p.ask(t); len(ans.Effects) != 1 {
				t.Errorf("mended: %+v, want the letter", ans)
			}
		})
	}
}

func TestPostmarkSilenceIsWorthWhatTheLagSays(t *testing.T) {
	for name, test := range map[string]struct {
		lag  recon.Duration
		want recon.Consistency
	}{"no lag is known": {0, recon.Eventual}, "a lag was measured": {recon.Duration(10 * time.Minute), recon.Strong}} {
		p := newPost(t, func(s *httpapi.PostmarkSettings) { s.Lag = test.lag })
		ability, _ := p.open(t).Sheet().Ability(recon.ByReference)
		want := recon.Ability{Method: recon.ByReference, Consistency: test.want, Lag: max(test.lag, recon.Duration(time.Minute)),
			History: recon.Duration(45 * 24 * time.Hour), NeedsMark: []recon.Mark{recon.MarkReference}, Kinds: []string{"email"}}
		if diff := cmp.Diff(want, ability); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		p.SetLag(5 * time.Minute)
		p.letter("op-1")
		if l := only(t, p.ask(t)); l.Outcome != recon.Absent || l.Reference != "op-1" {
			t.Errorf("%s: look is %s (%s), want absent", name, l.Outcome, l.Detail)
		}
		p.Advance(6 * time.Minute)
		if l := p.ask(t).Looks[0]; l.Outcome != recon.Found {
			t.Errorf("%s: after the lag the look is %s (%s), want found", name, l.Outcome, l.Detail)
		}
	}
}

// Dates are those of New York, also in the hour that is there twice; a search shows 10,000
// messages at most.
func TestPostmarkListsEveryLetterOfAWindow(t *testing.T) {
	p := newPost(t, nil)
	p.Reach = 20
	p.letter("before")
	p.Advance(time.Second)
	w := recon.Window{From: p.Now()}
	for i := range 50 {
		p.letter(fmt.Sprint("op-", i))
		p.Advance(10 * time.Minute)
	}
	w.To = p.Now()
	p.letter("after")
	p.Advance(time.Second)
	set := p.settings().API("postmark")
	set.Effects[0].Paging.Size, set.Effects[0].Paging.Reach = 10, p.Reach
	src, err := httpapi.New("postmark", set, httpapi.Options{Transport: bare})
	if err != nil {
		t.Fatal(err)
	}
	cursor, seen := "", map[string]int{}
	for range 60 {
		page, err := src.Page(t.Context(), sources.List{Kind: "email", Account: "letters", Mode: "live"}, w, cursor, p.Now)
		if err != nil || page.Look.Outcome == recon.Blind {
			t.Fatalf("page is %+v with %v", page.Look, err)
		}
		for _, e := range page.Effects {
			seen[e.Reference]++
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if len(seen) != 50 || cursor != "" || seen["before"]+seen["after"] > 0 {
		t.Errorf("%d letters were listed, want the 50 of the window", len(seen))
	}
}

func TestPostmarkForgetsAndTheSheetSaysWhen(t *testing.T) {
	p := newPost(t, nil)
	id := p.letter("op-1")
	p.Advance(46 * 24 * time.Hour)
	if l := p.ask(t, withID(id)).Looks[0]; l.Outcome != recon.Absent || l.Method != recon.ByID {
		t.Errorf("look is %s (%s), want absent by_id", l.Outcome, l.Detail)
	}
	for _, a := range p.open(t).Sheet().Abilities {
		if a.History != recon.Duration(45*24*time.Hour) {
			t.Errorf("%s sees back %s, want 45d: what is older is forgotten, not absent", a.Method, a.History)
		}
	}
}

func TestPostmarkRecipientAndSubjectAreComparedAndNotKept(t *testing.T) {
	for compare, want := range map[string]string{
		"": "", "nothing": "", "recipient": httpapi.HashTarget("jane@example.com"), "recipient_and_subject": httpapi.HashTarget("jane@example.com", "your refund "),
	} {
		p := newPost(t, func(s *httpapi.PostmarkSettings) { s.Compare = compare })
		p.letter("op-1")
		ans := p.ask(t)
		if len(ans.Effects) != 1 || ans.Effects[0].Target != want {
			t.Errorf("%q: effects are %+v, want target %q", compare, ans.Effects, want)
		}
		told := strings.ToLower(fmt.Sprintf("%+v %s", ans.Effects, ans.Raw[0].Bytes))
		for _, personal := range []string{"jane", "refund", "dear"} {
			if strings.Contains(told, personal) {
				t.Errorf("%q: %s is kept", compare, personal)
			}
		}
	}
	if one, other := httpapi.HashTarget("a@example.com", "x"), httpapi.HashTarget("a@example.com", "y"); one == other {
		t.Error("two subjects have one hash")
	}
}

// The search does not tell what became of a letter: each sent one is a request.
func TestPostmarkCostsARequestForEachSentLetter(t *testing.T) {
	p := newPost(t, nil)
	for i := range 3 {
		p.letter(fmt.Sprint("op-", i))
	}
	p.Send(httpapitest.Letter{Server: serverToken, To: []string{"jane@example.com"}, Queued: true})
	p.Advance(time.Minute)
	page, err := p.open(t).Page(t.Context(), sources.List{Kind: "email", Account: "letters", Mode: "live"},
		recon.Window{From: p.Now().Add(-time.Hour), To: p.Now()}, "", p.Now)
	requests, _ := p.Requests()
	if err != nil || len(page.Effects) != 4 || page.Look.Calls != 4 || requests != 4 {
		t.Errorf("%d letters in %d requests, %d told, with %v; want 4 in 4: the search and 3 sent ones", len(page.Effects), requests, page.Look.Calls, err)
	}
}

func TestPostmarkServersAreKeptApart(t *testing.T) {
	p := newPost(t, nil)
	p.Send(httpapitest.Letter{Server: "TESTONLY-other", To: []string{"jane@example.com"}, Metadata: map[string]string{"op_id": "op-1"}})
	if ans := p.ask(t); len(ans.Effects) != 0 {
		t.Errorf("a letter of another server was found: %+v", ans.Effects)
	}
}

func TestPostmarkSettings(t *testing.T) {
	right := httpapi.PostmarkSettings{Servers: []httpapi.PostmarkServer{{Account: "a", TokenFile: "t"}}}
	if faults := append(right.Validate(), right.API("p").Validate()...); len(faults) > 0 {
		t.Errorf("the least settings have faults: %v", faults)
	}
	wrong := httpapi.PostmarkSettings{
		APIURL: "postmark", Marker: "a_name_of_more_than_20_letters", Retention: recon.Duration(time.Hour), Compare: "body", PerSecond: -1,
		Servers: []httpapi.PostmarkServer{{TokenFile: "t", Mode: "sandbox"}, {Account: "b"}, {Account: "b", TokenFile: "t"}},
	}
	want := []string{"api_url", "marker", "retention", "compare", "per_second", "servers[1].token_file", "servers[0].account", "servers[0].mode", "servers[2].account"}
	if diff := cmp.Diff(want, paths(wrong.Validate())); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"servers"}, paths(httpapi.PostmarkSettings{}.Validate())); diff != "" {
		t.Errorf("faults of nothing (-want +got):\n%s", diff)
	}
}
