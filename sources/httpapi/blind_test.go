package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/httpapi"
	"github.com/seed-1c4f4dc2/reconciler/sources/httpapi/httpapitest"
)

// byReference lets questions be asked by our reference.
func byReference(s *httpapi.Settings) {
	s.Effects[0].ByReference = httpapi.LookupSettings{
		Path: "/effects", Query: map[string]string{"external_id": "{reference}"}, Items: "data", Consistency: "strong",
		NotFound: httpapi.NotFoundSettings{Empty: true},
	}
}

// question asks for an operation in the ways that are given by changes.
func (f fake) question(changes ...func(*sources.Question)) sources.Question {
	q := sources.Question{
		Operation: "op-1", Kind: "payout", Account: home.Account, Mode: home.Mode, Key: "key-1",
		Marks: []recon.Mark{recon.MarkReference, recon.MarkKey}, From: f.Now().Add(-recon.ClockSkew),
	}
	for _, change := range changes {
		change(&q)
	}
	return q
}

func withID(id string) func(*sources.Question) { return func(q *sources.Question) { q.EffectID = id } }

// ask asks one question and gives the answer.
func (f fake) ask(t *testing.T, q sources.Question) sources.Answer {
	t.Helper()
	ans, err := f.open(t, httpapi.Options{}).Ask(t.Context(), []sources.Question{q}, f.Now)
	if err != nil {
		t.Fatal(err)
	}
	return ans
}

// only gives the only look of an answer.
func only(t *testing.T, ans sources.Answer) recon.Look {
	t.Helper()
	if len(ans.Looks) != 1 {
		t.Fatalf("%d looks, want 1: %+v", len(ans.Looks), ans.Looks)
	}
	return ans.Looks[0]
}

func mustBeBlind(t *testing.T, ans sources.Answer, kind sources.Kind) {
	t.Helper()
	if l := only(t, ans); l.Outcome != recon.Blind || l.Fault != string(kind) || len(ans.Effects) != 0 {
		t.Errorf("look is %s %q (%s) with %d effects, want blind %q", l.Outcome, l.Fault, l.Detail, len(ans.Effects), kind)
	}
	if strings.Contains(fmt.Sprint(ans.Looks), "jane@") {
		t.Error("a message quotes a reply")
	}
}

func (f fake) make(reference string) string {
	return f.Server.Make(httpapitest.Object{Token: homeToken, Reference: reference, Key: "key-1", Parent: "ord_1", Amount: "10.05", Currency: "EUR"})
}

func TestWhatIsNoReplyOfTheAPIIsBlind(t *testing.T) {
	for fault, kind := range map[httpapitest.Fault]sources.Kind{
		httpapitest.Redirects: sources.Malformed, httpapitest.NoBody: sources.Malformed, httpapitest.HTML404: sources.OwnBug, httpapitest.HTML200: sources.Malformed,
	} {
		for name, q := range map[string]func(*sources.Question){"by id": withID("ef_1"), "by reference": func(*sources.Question) {}} {
			t.Run(string(fault)+" "+name, func(t *testing.T) {
				f := newFake(t, "cursor", byReference)
				f.Server.Break(fault, 0)
				mustBeBlind(t, f.ask(t, f.question(q)), kind)
			})
		}
	}
}

func TestNotFoundIsDeclaredNeverAssumed(t *testing.T) {
	byPath := func(s *httpapi.Settings) { s.APIURL += "/moved" } // 404 with another body
	f := newFake(t, "cursor", byPath)
	mustBeBlind(t, f.ask(t, f.question(withID("ef_9"))), sources.OwnBug)

	f = newFake(t, "cursor", nil)
	if l := only(t, f.ask(t, f.question(withID("ef_9")))); l.Outcome != recon.Absent || l.Method != recon.ByID {
		t.Errorf("look is %s by %s, want absent by_id", l.Outcome, l.Method)
	}
	// An empty list of a look-up that declares a status alone.
	f = newFake(t, "cursor", func(s *httpapi.Settings) {
		byReference(s)
		s.Effects[0].ByReference.NotFound = httpapi.NotFoundSettings{Status: 404}
	})
	mustBeBlind(t, f.ask(t, f.question()), sources.Malformed)
}

func TestAChangedFormatIsBlind(t *testing.T) {
	for name, change := range map[string]func(map[string]any){
		"no id":                func(o map[string]any) { delete(o, "id") },
		"another id":           func(o map[string]any) { o["id"] = "ef_77" },
		"no time":              func(o map[string]any) { delete(o, "created") },
		"a time of its own":    func(o map[string]any) { o["created"] = "yesterday" },
		"a new status":         func(o map[string]any) { o["state"] = "half" },
		"no amount":            func(o map[string]any) { delete(o["total"].(map[string]any), "value") },
		"an amount in words":   func(o map[string]any) { o["total"].(map[string]any)["value"] = "ten" },
		"an amount in floats":  func(o map[string]any) { o["total"].(map[string]any)["value"] = 10.055 },
		"a negative amount":    func(o map[string]any) { o["total"].(map[string]any)["value"] = "-10.05" },
		"a currency in words":  func(o map[string]any) { o["total"].(map[string]any)["currency"] = "euro" },
		"money became a text":  func(o map[string]any) { o["total"] = "10.05 EUR" },
		"a required one":       func(o map[string]any) { delete(o, "meta") },
		"a text that is a map": func(o map[string]any) { o["order"] = map[string]any{"id": "ord_1"} },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, "cursor", func(s *httpapi.Settings) { s.Effects[0].Required = []string{"meta"} })
			id := f.make("op-1")
			f.Change(change)
			mustBeBlind(t, f.ask(t, f.question(withID(id))), sources.Malformed)
		})
	}
}

func TestAFilterThatIsNotObeyedIsBlind(t *testing.T) {
	f := newFake(t, "cursor", byReference)
	f.make("op-2")
	f.IgnoreFilters()
	mustBeBlind(t, f.ask(t, f.question()), sources.Malformed)

	// Where silence proves nothing anyway, near hits are passed over, and the list is asked.
	f = newFake(t, "cursor", func(s *httpapi.Settings) { byReference(s); s.Effects[0].ByReference.Consistency = "eventual" })
	f.make("op-2")
	f.IgnoreFilters()
	ans := f.ask(t, f.question())
	if len(ans.Looks) != 2 || ans.Looks[0].Outcome != recon.Absent || ans.Looks[1].Method != recon.ByList || ans.Looks[1].Outcome != recon.Found {
		t.Errorf("looks are %+v, want an absent one by reference and then the list", ans.Looks)
	}
}

// B69: the reference is told as the provider holds it, and null is none.
func TestB69_ReferenceIsReadAsItIs(t *testing.T) {
	for held, want := range map[any]string{" op-1 ": " op-1 ", "OP-1": "OP-1", nil: "", 1510: "1510"} {
		f := newFake(t, "cursor", nil)
		id := f.make("op-1")
		f.Change(func(o map[string]any) { o["meta"] = map[string]any{"operation_id": held} })
		ans := f.ask(t, f.question(withID(id)))
		if len(ans.Effects) != 1 || ans.Effects[0].Reference != want {
			t.Errorf("%v: effects are %+v, want one with reference %q", held, ans.Effects, want)
		}
	}
	f := newFake(t, "cursor", nil)
	id := f.make("op-1")
	f.Change(func(o map[string]any) { o["meta"] = nil })
	if ans := f.ask(t, f.question(withID(id))); len(ans.Effects) != 1 || ans.Effects[0].Reference != "" {
		t.Errorf("with metadata null the effects are %+v, want one without reference", ans.Effects)
	}
	// White space around our own reference is not another reference.
	f = newFake(t, "cursor", func(s *httpapi.Settings) { byReference(s) })
	f.make("op-1")
	f.Change(func(o map[string]any) { o["meta"] = map[string]any{"operation_id": " op-1 "} })
	if l := only(t, f.ask(t, f.question())); l.Outcome != recon.Found {
		t.Errorf("look is %s (%s), want found", l.Outcome, l.Detail)
	}
}

// B66: what the provider does not show yet is not known; it is never 0.
func TestB66_AnAmountThatIsNullIsNotKnown(t *testing.T) {
	f := newFake(t, "cursor", nil)
	id := f.make("op-1")
	f.Change(func(o map[string]any) { o["total"] = map[string]any{"value": nil, "currency": nil} })
	ans := f.ask(t, f.question(withID(id)))
	if len(ans.Effects) != 1 || !ans.Effects[0].Money.IsZero() || ans.Effects[0].Fee != nil {
		t.Errorf("effects are %+v, want one without amount and fee", ans.Effects)
	}
}

// B102: the effect's own id and what it hangs under are two fields.
func TestB102_IDAndParentAreNotMistaken(t *testing.T) {
	f := newFake(t, "cursor", nil)
	id := f.make("op-1")
	e := f.ask(t, f.question(withID(id))).Effects[0]
	if e.ID != id || e.Parent != "ord_1" {
		t.Errorf("effect %s hangs under %s, want %s under ord_1", e.ID, e.Parent, id)
	}
	if l := f.ask(t, f.question(withID("ord_1"))).Looks[0]; l.Outcome != recon.Absent {
		t.Errorf("asked for the parent's id: look is %s, want absent", l.Outcome)
	}
}

func TestRawHoldsTheConfiguredFieldsAlone(t *testing.T) {
	f := newFake(t, "cursor", func(s *httpapi.Settings) { s.Effects[0].Fields.TargetHash = []string{"customer"} })
	id := f.make("op-1")
	ans := f.ask(t, f.question(withID(id)))
	if got := fmt.Sprintf("%s %+v", ans.Raw[0].Bytes, ans.Effects); strings.Contains(got, "jane") {
		t.Errorf("%s holds what is personal", got)
	}
	if want := httpapi.HashTarget(" Jane@Example.com "); ans.Effects[0].Target != want {
		t.Errorf("target is %s, want %s", ans.Effects[0].Target, want)
	}
}

func TestOnlyGetsLeaveTheSource(t *testing.T) {
	f := newFake(t, "cursor", nil)
	var methods []string
	src := f.open(t, httpapi.Options{Transport: carrier(func(r *http.Request) (*http.Response, error) {
		methods = append(methods, r.Method)
		return f.RoundTrip(r)
	})})
	if _, err := src.Ask(t.Context(), []sources.Question{f.question()}, f.Now); err != nil {
		t.Fatal(err)
	}
	if err := src.Post(f.URL + "/v1/effects"); err == nil {
		t.Error("the transport carried a POST")
	}
	if len(methods) != 1 || methods[0] != http.MethodGet {
		t.Errorf("methods are %v, want one GET", methods)
	}
}

type carrier func(*http.Request) (*http.Response, error)

func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) { return c(r) }

func TestAnIDNeverLeadsElsewhere(t *testing.T) {
	f := newFake(t, "cursor", nil)
	for _, id := range []string{"..", ".", "a/../b", "x?y=z", "a#b"} {
		ans := f.ask(t, f.question(withID(id)))
		if l := ans.Looks[0]; l.Outcome == recon.Found {
			t.Errorf("id %q: look is found", id)
		}
	}
	if all, _ := f.Requests(); all != 3 {
		t.Errorf("%d requests, want 3: two of the ids name a folder", all)
	}
}

// The provider may hold the operation's id or that of its group; silence is silence under both.
func TestAGroupIsAskedForInTheSameLook(t *testing.T) {
	inGroup := func(q *sources.Question) { q.Group = "batch-7" }
	f := newFake(t, "cursor", byReference)
	id := f.make("batch-7")
	if l := only(t, f.ask(t, f.question(inGroup))); l.Outcome != recon.Found || l.Found[0].ID != id || l.Reference != "op-1" || l.Calls != 2 {
		t.Errorf("look is %+v, want found %s in two requests", l, id)
	}
	f = newFake(t, "cursor", byReference)
	if l := only(t, f.ask(t, f.question(inGroup))); l.Outcome != recon.Absent || l.Calls != 2 {
		t.Errorf("look is %s in %d requests, want absent in two", l.Outcome, l.Calls)
	}
	f.Server.Break(httpapitest.Broken, 1)
	mustBeBlind(t, f.ask(t, f.question(inGroup)), sources.Unavailable)
}

// A list whose objects no longer show our marks, or their type, would be silent for ever.
func TestMarksThatAreGoneAreBlind(t *testing.T) {
	only := func(s *httpapi.Settings) { s.Effects[0].Only = map[string]string{"customer": "jane@example.com"} }
	for name, test := range map[string]struct {
		settings func(*httpapi.Settings)
		gone     string
		want     recon.Outcome
	}{
		"the metadata":                       {nil, "meta", recon.Blind},
		"the key":                            {nil, "idempotency_key", recon.Blind},
		"the type":                           {only, "customer", recon.Blind},
		"a provider that leaves out empties": {func(s *httpapi.Settings) { s.Effects[0].Sparse = true }, "meta", recon.Found},
		"another type":                       {func(s *httpapi.Settings) { s.Effects[0].Only = map[string]string{"customer": "joan"} }, "nothing", recon.Absent},
		"this type":                          {only, "nothing", recon.Found},
	} {
		f := newFake(t, "cursor", test.settings)
		f.make("op-1")
		f.Change(func(o map[string]any) { delete(o, test.gone) })
		if l := f.ask(t, f.question()).Looks[0]; l.Outcome != test.want {
			t.Errorf("%s: look is %s (%s), want %s", name, l.Outcome, l.Detail, test.want)
		}
	}
}

// Three questions would be worth a page; but a list whose silence proves nothing finds less
// than the requests that it would save.
func TestAnEventualListDoesNotStandInForLookUps(t *testing.T) {
	f := newFake(t, "cursor", func(s *httpapi.Settings) { byReference(s); s.Effects[0].List.Consistency = "eventual" })
	var batch []sources.Question
	for _, op := range []recon.OperationID{"op-1", "op-2", "op-3", "op-4"} {
		batch = append(batch, f.question(func(q *sources.Question) { q.Operation = op }))
	}
	ans, err := f.open(t, httpapi.Options{}).Ask(t.Context(), batch, f.Now)
	if err != nil || len(ans.Looks) != 4 {
		t.Fatalf("%d looks with %v, want 4: %+v", len(ans.Looks), err, ans.Looks)
	}
	for _, l := range ans.Looks {
		if l.Method != recon.ByReference || l.Outcome != recon.Absent {
			t.Errorf("look is %s by %s, want absent by_reference", l.Outcome, l.Method)
		}
	}
}

// A provider that tells its errors with status 200 may show an empty list beside them.
func TestAnErrorThatComesAsAnAnswerIsNoSilence(t *testing.T) {
	for body, want := range map[string]struct {
		outcome recon.Outcome
		fault   sources.Kind
	}{
		`{"ok":true,"result":{"parcels":[]}}`:                           {recon.Absent, ""},
		`{"ok":false,"error":"bad_key","result":{"parcels":[]}}`:        {recon.Blind, sources.Malformed},
		`{"ok":"no","result":{"parcels":[]}}`:                           {recon.Blind, sources.Malformed},
		`{"result":{"parcels":[]}}`:                                     {recon.Blind, sources.Malformed},
		`{"ok":false,"error":"unknown_parcel","result":{"parcels":[]}}`: {recon.Absent, ""},
	} {
		url := provider(t, func(*http.Request) (int, string) { return 200, body })
		ans, _ := lost(t, httpapi.Settings{
			APIURL: url, Success: httpapi.SuccessSettings{Path: "ok", Equals: "true"},
			Effects: []httpapi.EffectSettings{{
				Kind: "parcel", Fields: httpapi.FieldSettings{ID: "no", CreatedAt: "booked", Reference: "ref"},
				ByReference: httpapi.LookupSettings{Path: "/parcels", Query: map[string]string{"ref": "{reference}"}, Items: "result.parcels", Consistency: "strong",
					NotFound: httpapi.NotFoundSettings{Status: 200, Path: "error", Equals: "unknown_parcel", Empty: true}},
			}},
		}, "")
		if l := only(t, ans); l.Outcome != want.outcome || l.Fault != string(want.fault) {
			t.Errorf("%s: look is %s %q (%s), want %s", body, l.Outcome, l.Fault, l.Detail, want.outcome)
		}
	}
}

func TestA429IsKeptQuietFor(t *testing.T) {
	f := newFake(t, "cursor", byReference)
	src := f.open(t, httpapi.Options{})
	f.Server.Break(httpapitest.TooMany, 0)
	for range 2 {
		ans, err := src.Ask(t.Context(), []sources.Question{f.question(), f.question(func(q *sources.Question) { q.Operation = "op-2" })}, f.Now)
		if err != nil || ans.Looks[0].Fault != string(sources.RateLimited) {
			t.Fatalf("looks are %+v with %v, want rate_limited", ans.Looks, err)
		}
	}
	if all, _ := f.Requests(); all != 1 {
		t.Errorf("%d requests, want 1: the provider asked for silence", all)
	}
	f.Mend()
	f.Advance(2 * time.Second)
	if ans, err := src.Ask(t.Context(), []sources.Question{f.question()}, f.Now); err != nil || ans.Looks[0].Outcome != recon.Absent {
		t.Errorf("after the silence: %+v, %v", ans.Looks, err)
	}
}
