package recon

import (
	"testing"
	"time"
)

func TestSpansAreCutNeverRoundedUp(t *testing.T) {
	t.Parallel()
	tests := []struct {
		d    time.Duration
		want string
	}{
		{0, "0 s"},
		{999 * time.Millisecond, "0 s"},
		{59*time.Second + 999*time.Millisecond, "59 s"},
		{90 * time.Second, "1 min 30 s"},
		{time.Hour, "1 h"},
		{3*time.Hour + 10*time.Minute + 59*time.Second, "3 h 10 min"},
		{24*time.Hour + 59*time.Minute, "1 d"},
		{50 * time.Hour, "2 d 2 h"},
		{-90 * time.Second, "1 min 30 s"},
	}
	for _, tt := range tests {
		if got := Duration(tt.d).Text(); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.d, got, tt.want)
		}
	}
}

func TestEveryKindAndStateHasWordsOfItsOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	say := func(name, text string) {
		if text == "" || text == name {
			t.Errorf("%s has no words for people", name)
		}
		if other, ok := seen[text]; ok {
			t.Errorf("%s and %s have the same words", name, other)
		}
		seen[text] = name
	}
	for _, k := range FindingKinds {
		say(string(k), k.Text())
	}
	for _, s := range States {
		say(string(s), s.Text())
	}
}

func TestTheSafeRetryWindowIsToldAsItIs(t *testing.T) {
	t.Parallel()
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	keys := Policy{KeyLifetime: Duration(24 * time.Hour), KeyMargin: Duration(30 * time.Minute)}
	unknown := Operation{Source: "stripe-main", State: Unknown, KeyExpiresAt: at("2026-03-02T02:00:00Z")}
	stored := unknown
	stored.LastClass = ClassStoredError
	closed := unknown
	closed.State = Succeeded
	tests := []struct {
		name string
		op   Operation
		pol  Policy
		now  string
		want string
	}{
		{"open, time left", unknown, keys, "2026-03-01T22:20:00Z", "safe retry ends in 3 h 10 min, at 2026-03-02 01:30:00 UTC, same key only"},
		{"the last second", unknown, keys, "2026-03-02T01:29:59Z", "safe retry ends in 1 s, at 2026-03-02 01:30:00 UTC, same key only"},
		{"the margin has begun", unknown, keys, "2026-03-02T01:30:00Z", "safe retry ended 0 s ago, at 2026-03-02 01:30:00 UTC: sending it again could do it twice"},
		{"long over", unknown, keys, "2026-03-03T01:30:00Z", "safe retry ended 1 d ago, at 2026-03-02 01:30:00 UTC: sending it again could do it twice"},
		{"a stored error answers every retry", stored, keys, "2026-03-01T22:20:00Z", "a retry with the same key only repeats the provider's stored error"},
		{"no keys", Operation{Source: "post", State: Unknown}, Policy{}, "2026-03-01T22:20:00Z", "there is no safe retry: the provider keeps no keys"},
		{"sent by another ledger's word", Operation{Source: "stripe-main", State: Unknown, SentAt: time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)}, keys,
			"2026-03-01T22:20:00Z", "there is no safe retry: it is not known until when its key serves"},
		{"not sent", Operation{Source: "stripe-main", State: Pending}, keys, "2026-03-01T22:20:00Z", "nothing was sent yet"},
		{"closed", closed, keys, "2026-03-01T22:20:00Z", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := Story{Operation: tt.op, Policy: tt.pol}.SafeRetry(at(tt.now), nil)
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAnAnswerNamesOnlyTheOperationsOwnEffects(t *testing.T) {
	t.Parallel()
	mine := Effect{ID: "re_1", System: "stripe", Account: "acct_1", Mode: "live", Status: InFlight}
	others := EffectIdentity{System: "stripe", Account: "acct_1", Mode: "live", ID: "re_2"}
	test := mine
	test.Mode = "test"
	s := Story{Effects: []Effect{mine}}
	tests := []struct {
		name string
		look Look
		want string
	}{
		{"ours among others", Look{Outcome: Found, Complete: true, Found: []EffectIdentity{others, mine.Identity()}}, "found re_1 (in flight)"},
		{"only others", Look{Outcome: Found, Complete: true, Found: []EffectIdentity{others}}, "1 there, none of them ours"},
		{"only others, whose pages tell them", Look{Outcome: Found, Complete: true}, "others there, none of them ours"},
		{"the same id in another mode is another effect", Look{Outcome: Found, Complete: true, Found: []EffectIdentity{test.Identity()}}, "1 there, none of them ours"},
		{"a list that broke off proves nothing", Look{Outcome: Found, Found: []EffectIdentity{others}}, "ours was not seen, but the look was not complete"},
		{"absent", Look{Outcome: Absent, Complete: true}, "not there"},
		{"blind is never absent", Look{Outcome: Blind, Fault: "rate_limited"}, "could not look: it allowed no more requests"},
		{"blind without a reason", Look{Outcome: Blind}, "could not look: no reason given"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := s.Answer(tt.look); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestHowAFindingEndedIsToldByItOrByTheDecisionThatEndedIt(t *testing.T) {
	t.Parallel()
	first, second := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC), time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)
	s := Story{Journal: []Entry{
		{At: first, Body: []byte(`not json`)},
		{At: first, Body: []byte(`{"reason":"Found.","ended":[{"id":"f1","kind":"unresolved"}]}`)},
		{At: second, Body: []byte(`{"reason":"Found again.","ended":[{"id":"f2"},{"id":"f1"}]}`)},
		{At: second.Add(time.Hour), Body: []byte(`{"reason":"Something else."}`)},
	}}
	tests := []struct {
		name string
		f    Finding
		at   time.Time
		how  string
	}{
		{"open", Finding{ID: "f1"}, time.Time{}, ""},
		{"by its own words", Finding{ID: "f1", State: FindingEnded, EndedAt: first, Ending: "Adopted."}, first, "Adopted."},
		{"by the last decision that ended it", Finding{ID: "f1", State: FindingEnded}, second, "Found again."},
		{"its own time, the decision's words", Finding{ID: "f1", State: FindingSettled, EndedAt: first}, first, "Found again."},
		{"nobody says", Finding{ID: "f3", State: FindingEnded}, time.Time{}, ""},
		{"without an id nobody can say", Finding{State: FindingEnded}, time.Time{}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			at, how := s.Ending(tt.f)
			if !at.Equal(tt.at) || how != tt.how {
				t.Errorf("got %v %q, want %v %q", at, how, tt.at, tt.how)
			}
		})
	}
}
