package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/httpapi"
)

// One provider of each family stands here with what it documents, so that the settings can
// say all that a family needs: K1 stored answers, K2 the present state, U upserts, S a mark
// that is searched with a lag, E events only.

// provider serves what a function answers, as JSON.
func provider(t *testing.T, answer func(*http.Request) (int, string)) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("the source sent a %s", r.Method)
		}
		status, body := answer(r)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // the client may be gone
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// lost asks a source of one kind for an operation whose answer was lost.
func lost(t *testing.T, s httpapi.Settings, id string) (sources.Answer, recon.Sheet) {
	t.Helper()
	src, err := httpapi.New("family", s, httpapi.Options{Transport: bare})
	if err != nil {
		t.Fatal(err)
	}
	q := sources.Question{Operation: "op-1", Kind: s.Effects[0].Kind, Account: "default", Mode: "live", Key: "key-1", EffectID: id,
		Marks: []recon.Mark{recon.MarkReference, recon.MarkKey}, From: noon.Add(-time.Hour)}
	ans, err := src.Ask(t.Context(), []sources.Question{q}, func() time.Time { return noon })
	if err != nil {
		t.Fatal(err)
	}
	return ans, src.Sheet()
}

// policy is one of an irreversible action that sends both marks.
func policy(kind string) recon.Policy {
	p := recon.DefaultPolicy()
	p.Effect, p.Class, p.Marks = kind, recon.Irreversible, []recon.Mark{recon.MarkReference, recon.MarkKey}
	return p
}

// K1: a ticket desk that keeps keys for two hours, whose tickets bear an external id.
func TestFamilyK1_AStoredAnswer(t *testing.T) {
	held := `{"id":35436,"created_at":"2026-03-02T11:30:00Z","external_id":"op-1","status":"open"}`
	for tickets, want := range map[string]recon.Outcome{"[" + held + "]": recon.Found, "[]": recon.Absent} {
		url := provider(t, func(r *http.Request) (int, string) {
			if r.URL.Query().Get("external_id") != "op-1" {
				return 400, `{"error":"external_id"}`
			}
			return 200, `{"tickets":` + tickets + `,"count":1}`
		})
		ans, sheet := lost(t, httpapi.Settings{
			APIURL: url, Keys: sources.KeySettings{Lifetime: recon.Duration(2 * time.Hour), RepeatAnswers: true, HoldsOne: true},
			Effects: []httpapi.EffectSettings{{
				Kind: "ticket", Fields: httpapi.FieldSettings{ID: "id", CreatedAt: "created_at", Status: "status", Reference: "external_id"},
				Statuses:    map[string]string{"new": "completed", "open": "completed", "deleted": "reversed"},
				ByReference: httpapi.LookupSettings{Path: "/tickets", Query: map[string]string{"external_id": "{reference}"}, Items: "tickets", Consistency: "strong", NotFound: httpapi.NotFoundSettings{Empty: true}},
			}},
		}, "")
		if l := only(t, ans); l.Outcome != want || l.Method != recon.ByReference {
			t.Errorf("look is %s by %s (%s), want %s", l.Outcome, l.Method, l.Detail, want)
		}
		if sheet.KeyLifetime.Std() != 2*time.Hour || !sheet.RepeatAnswer || !sheet.Finds(policy("ticket")) {
			t.Errorf("the sheet is %+v", sheet)
		}
	}
}

// K2: a bank whose lists filter by the key.
func TestFamilyK2_AKeyGivesThePresentState(t *testing.T) {
	url := provider(t, func(r *http.Request) (int, string) {
		if r.URL.Query().Get("idempotency_key") != "key-1" {
			return 200, `{"data":[],"next_cursor":null}`
		}
		return 200, `{"data":[{"id":"transfer_1","created_at":"2026-03-02T11:30:00Z","idempotency_key":"key-1","status":"pending_submission","amount":4200,"currency":"USD"}],"next_cursor":null}`
	})
	ans, sheet := lost(t, httpapi.Settings{
		APIURL: url, Keys: sources.KeySettings{Lifetime: recon.Duration(365 * 24 * time.Hour), HoldsOne: true},
		Effects: []httpapi.EffectSettings{{
			Kind: "transfer", Unit: "minor", Fields: httpapi.FieldSettings{ID: "id", CreatedAt: "created_at", Status: "status", Key: "idempotency_key", Amount: "amount", Currency: "currency"},
			Statuses: map[string]string{"pending_submission": "in_flight", "complete": "completed", "returned": "reversed", "canceled": "failed"},
			ByKey:    httpapi.LookupSettings{Path: "/transfers", Query: map[string]string{"idempotency_key": "{key}"}, Items: "data", Consistency: "strong", NotFound: httpapi.NotFoundSettings{Empty: true}},
			Paging:   httpapi.PagingSettings{Style: "cursor", Param: "cursor", Next: "next_cursor"},
		}},
	}, "")
	l := only(t, ans)
	if l.Outcome != recon.Found || l.Key != "key-1" || ans.Effects[0].Status != recon.InFlight || ans.Effects[0].Money.Minor != 4200 {
		t.Errorf("look is %+v with %+v, want the transfer in flight", l, ans.Effects)
	}
	if sheet.RepeatAnswer || !sheet.KeyHoldsOne {
		t.Errorf("the sheet is %+v: a repeat gives the present state, not the first answer", sheet)
	}
}

// U: a CRM whose records are made and changed under an id of ours.
func TestFamilyU_AnUpsertIsReadAtItsOwnAddress(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		body   string
		want   recon.Outcome
	}{
		"there":         {200, `{"Id":"006x","CreatedDate":"2026-03-02T11:30:00Z","Op_Id__c":"op-1"}`, recon.Found},
		"not there":     {404, `[{"errorCode":"NOT_FOUND","message":"The requested resource does not exist"}]`, recon.Absent},
		"no such field": {404, `[{"errorCode":"NOT_SUPPORTED"}]`, recon.Blind},
		// More than one record bears the id: a list of addresses, and nothing was written.
		"several": {300, `["/records/1","/records/2"]`, recon.Blind},
	} {
		url := provider(t, func(r *http.Request) (int, string) {
			if r.URL.Path != "/sobjects/Opportunity/Op_Id__c/op-1" {
				t.Errorf("%s was asked", r.URL.Path)
			}
			return test.status, test.body
		})
		ans, _ := lost(t, httpapi.Settings{
			APIURL: url, Marker: "Op_Id__c",
			Effects: []httpapi.EffectSettings{{
				Kind: "record", Fields: httpapi.FieldSettings{ID: "Id", CreatedAt: "CreatedDate", Reference: "{marker}"},
				ByReference: httpapi.LookupSettings{Path: "/sobjects/Opportunity/{marker}/{reference}", Consistency: "strong", NotFound: httpapi.NotFoundSettings{Status: 404, Path: "[0].errorCode", Equals: "NOT_FOUND"}},
			}},
		}, "")
		if l := only(t, ans); l.Outcome != test.want {
			t.Errorf("%s: look is %s (%s), want %s", name, l.Outcome, l.Detail, test.want)
		}
	}
}

// S: letters with a mark that is found when the index has it. Silence proves nothing, and a
// near hit is none.
func TestFamilyS_ASearchWithALag(t *testing.T) {
	indexed := false
	url := provider(t, func(*http.Request) (int, string) {
		if !indexed {
			return 200, `{"items":[{"id":"m_0","timestamp":1772451000.5,"user-variables":{"op":"op-11"}}]}`
		}
		return 200, `{"items":[{"id":"m_1","timestamp":1772451000.5,"user-variables":{"op":"op-1"}}]}`
	})
	set := httpapi.Settings{APIURL: url, Effects: []httpapi.EffectSettings{{
		Kind: "letter", Dates: "unix", Fields: httpapi.FieldSettings{ID: "id", CreatedAt: "timestamp", Reference: "user-variables.op"},
		ByReference: httpapi.LookupSettings{Path: "/events", Query: map[string]string{"user-variables": `{marker}:{reference}`}, Items: "items", Consistency: "eventual", NotFound: httpapi.NotFoundSettings{Empty: true}},
	}}}
	ans, sheet := lost(t, set, "")
	ability, _ := sheet.Ability(recon.ByReference)
	if l := only(t, ans); l.Outcome != recon.Absent || ability.Consistency != recon.Eventual {
		t.Errorf("look is %s (%s), and silence is %s; want absent, which proves nothing", l.Outcome, l.Detail, ability.Consistency)
	}
	indexed = true
	if ans, _ := lost(t, set, ""); only(t, ans).Outcome != recon.Found {
		t.Errorf("looks are %+v, want found", ans.Looks)
	}
}

// E: a provider that can be asked by its own id alone. A lost answer leaves none.
func TestFamilyE_EventsOnly(t *testing.T) {
	url := provider(t, func(r *http.Request) (int, string) {
		if !strings.HasSuffix(r.URL.Path, "/m-1") {
			return 404, `{"code":"NotFoundException"}`
		}
		b, err := json.Marshal(map[string]any{"MessageId": "m-1", "SentAt": noon})
		if err != nil {
			t.Error(err)
		}
		return 200, string(b)
	})
	set := httpapi.Settings{APIURL: url, Effects: []httpapi.EffectSettings{{
		Kind: "email", Fields: httpapi.FieldSettings{ID: "MessageId", CreatedAt: "SentAt"},
		ByID: httpapi.LookupSettings{Path: "/insights/{id}", Consistency: "strong", NotFound: httpapi.NotFoundSettings{Status: 404, Path: "code", Equals: "NotFoundException"}},
	}}}
	ans, sheet := lost(t, set, "")
	if l := only(t, ans); l.Outcome != recon.Blind || l.Fault != string(sources.Unsupported) || l.Calls != 0 {
		t.Errorf("look is %s %q with %d requests, want blind unsupported: nothing can be asked", l.Outcome, l.Fault, l.Calls)
	}
	if sheet.Finds(policy("email")) {
		t.Error("the sheet promises to find what a lost answer leaves without id")
	}
	if ans, _ := lost(t, set, "m-1"); only(t, ans).Outcome != recon.Found || !slices.ContainsFunc(ans.Effects, func(e recon.Effect) bool { return e.ID == "m-1" }) {
		t.Errorf("looks are %+v, want found by the id that was told", ans.Looks)
	}
}
