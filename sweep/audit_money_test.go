package sweep

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/rules"
)

// shop is two lists of invented lines, imported and audited: what we meant, what is there.
type shop struct {
	operations, effects []string
	kind, action        string
	zone, from, to      string // days, the last one included; empty: the hours around the stand's beginning
}

// audit accounts for the shop's month.
func (s shop) audit(t *testing.T) AuditResult {
	t.Helper()
	if s.kind == "" {
		s.kind, s.action = "refund", "refund.create"
	}
	var m month
	for _, line := range s.operations {
		given := `{"source":"stripe-main","account":"acct_1","sent_at":"2026-03-02T09:00:00Z",`
		for field, usual := range map[string]string{"state": "unknown", "target": "order:1", "action": s.action} {
			if !strings.Contains(line, `"`+field+`"`) {
				given += `"` + field + `":"` + usual + `",`
			}
		}
		op, err := recon.ParseOperation([]byte(given + line[1:]))
		if err != nil {
			t.Fatal(err)
		}
		m.operations = append(m.operations, op)
	}
	for _, line := range s.effects {
		e, err := recon.ParseEffect([]byte(`{"source":"stripe-main","account":"acct_1",` + usual(line) + line[1:]))
		if err != nil {
			t.Fatal(err)
		}
		m.effects = append(m.effects, e)
	}
	source := &listed{name: testSource, effects: m.effects, page: 2, places: auditAccounts}
	source.sheet = recon.Sheet{
		System: string(testSource), Kinds: []string{"refund", "charge", "transfer"}, Accounts: auditAccounts,
		Abilities: []recon.Ability{{Method: recon.ByList, Consistency: recon.Strong}},
	}
	window, now := recon.Window{From: monday.Add(-time.Hour), To: monday.Add(time.Hour)}, monday.Add(3*time.Hour)
	if s.from != "" {
		window = s.days(t)
		now = window.To.Add(48 * time.Hour)
	}
	return auditMonth(t, m, source, policyFor(source, s.action, s.kind), window, now, policyFor(source, "other.refund", "refund"))
}

// usual is the status of an effect whose line has none.
func usual(line string) string {
	if strings.Contains(line, `"status"`) {
		return ""
	}
	return `"status":"completed",`
}

// days is the window of whole days in the shop's zone.
func (s shop) days(t *testing.T) recon.Window {
	t.Helper()
	zone, err := time.LoadLocation(s.zone)
	if err != nil {
		t.Fatal(err)
	}
	from, err := time.ParseInLocation(time.DateOnly, s.from, zone)
	if err != nil {
		t.Fatal(err)
	}
	to, err := time.ParseInLocation(time.DateOnly, s.to, zone)
	if err != nil {
		t.Fatal(err)
	}
	return recon.Window{From: from, To: to.AddDate(0, 0, 1)}
}

const at = `"created_at":"2026-03-02T09:00:00Z"`

var publicCases = []struct {
	name                string
	shop                shop
	operations, effects classes
	finding             recon.FindingKind // the only one that is not unresolved; empty: none
	says                []string          // in its reason
}{
	{
		"B25 a yen amount a hundred times too small", shop{
			operations: []string{`{"id":"op_1","amount":6400,"currency":"jpy","state":"succeeded","effect_id":"re_1",` + at + `}`},
			effects:    []string{`{"id":"re_1","kind":"refund","reference":"op_1","amount":64,"currency":"jpy",` + at + `}`},
		},
		classes{rules.ClassMismatch: 1}, classes{rules.ClassMismatch: 1}, recon.FindMismatch, []string{"6,400 JPY", "64 JPY"},
	},
	{
		"B34 the first three are in, the fourth is not", shop{
			zone: "UTC", from: "2026-02-10", to: "2026-02-10",
			effects: []string{`{"id":"re_1","kind":"refund","amount":1,"currency":"eur","status":"failed","created_at":"2026-02-10T00:00:00Z"}`,
				`{"id":"re_2","kind":"refund","amount":1,"currency":"eur","status":"failed","created_at":"2026-02-10T13:00:00Z"}`,
				`{"id":"re_3","kind":"refund","amount":1,"currency":"eur","status":"failed","created_at":"2026-02-10T23:59:59.999999Z"}`,
				`{"id":"re_4","kind":"refund","amount":1,"currency":"eur","status":"failed","created_at":"2026-02-11T00:00:00Z"}`},
		},
		nil, classes{rules.ClassFailed: 3}, "", nil,
	},
	{
		"B35 an evening in Mexico City is still May", shop{
			zone: "America/Mexico_City", from: "2026-05-01", to: "2026-05-31",
			effects: []string{`{"id":"re_1","kind":"refund","amount":1,"currency":"eur","status":"failed","created_at":"2026-06-01T03:30:00Z"}`},
		},
		nil, classes{rules.ClassFailed: 1}, "", nil,
	},
	{
		"B35 October in Oslo ends in winter time", shop{
			zone: "Europe/Oslo", from: "2026-10-01", to: "2026-10-31",
			effects: []string{`{"id":"re_1","kind":"refund","amount":1,"currency":"eur","status":"failed","created_at":"2026-10-31T22:59:59Z"}`,
				`{"id":"re_2","kind":"refund","amount":1,"currency":"eur","status":"failed","created_at":"2026-10-31T23:00:00Z"}`},
		},
		nil, classes{rules.ClassFailed: 1}, "", nil,
	},
	{
		"B104 a dinar amount without its last digit", shop{
			operations: []string{`{"id":"op_1","amount":5125,"currency":"kwd","state":"succeeded","effect_id":"re_1",` + at + `}`},
			effects:    []string{`{"id":"re_1","kind":"refund","reference":"op_1","amount":5120,"currency":"kwd",` + at + `}`},
		},
		classes{rules.ClassMismatch: 1}, classes{rules.ClassMismatch: 1}, recon.FindMismatch, []string{"5.125 KWD", "5.120 KWD"},
	},
	{
		"B39 an amount that fits one operation is a suggestion", shop{
			operations: []string{`{"id":"op_1","amount":2600,"currency":"eur","parent":"pi_1",` + at + `}`, `{"id":"op_2","amount":4800,"currency":"eur","parent":"pi_1",` + at + `}`},
			effects:    []string{`{"id":"re_1","kind":"refund","amount":2600,"currency":"eur","parent":"pi_1",` + at + `}`},
		},
		classes{rules.ClassUnresolved: 2}, classes{rules.ClassOrphan: 1}, recon.FindOrphan, []string{"not proven, but it could be that of op_1"},
	},
	{
		"B39 an amount that fits three lists them", shop{
			operations: []string{`{"id":"op_1","amount":1900,"currency":"eur","parent":"pi_1",` + at + `}`, `{"id":"op_2","amount":1900,"currency":"eur","parent":"pi_1",` + at + `}`,
				`{"id":"op_3","amount":1900,"currency":"eur","parent":"pi_1",` + at + `}`},
			effects: []string{`{"id":"re_1","kind":"refund","amount":1900,"currency":"eur","parent":"pi_1",` + at + `}`},
		},
		classes{rules.ClassUnresolved: 3}, classes{rules.ClassOrphan: 1}, recon.FindOrphan, []string{"op_1", "op_2", "op_3"},
	},
	{
		"B40 one transfer pays three operations of a group exactly", shop{
			kind: "transfer", action: "payout.send",
			operations: []string{`{"id":"op_1","group":"g","amount":1000,"currency":"eur",` + at + `}`, `{"id":"op_2","group":"g","amount":2010,"currency":"eur",` + at + `}`,
				`{"id":"op_3","group":"g","amount":2990,"currency":"eur",` + at + `}`},
			effects: []string{`{"id":"tr_1","kind":"transfer","reference":"g","amount":6000,"currency":"eur",` + at + `}`},
		},
		classes{rules.ClassMatched: 3}, classes{rules.ClassMatched: 1}, "", nil,
	},
	{
		"B62 one refund for three operations counts once", shop{
			operations: []string{`{"id":"op_1","group":"batch","amount":2750,"currency":"eur",` + at + `}`, `{"id":"op_2","group":"batch","amount":2750,"currency":"eur",` + at + `}`,
				`{"id":"op_3","group":"batch","amount":2750,"currency":"eur",` + at + `}`},
			effects: []string{`{"id":"re_1","kind":"refund","reference":"batch","amount":8250,"currency":"eur",` + at + `}`},
		},
		classes{rules.ClassMatched: 3}, classes{rules.ClassMatched: 1}, "", nil,
	},
	{
		"B40 a group whose sum is off", shop{
			kind: "transfer", action: "payout.send",
			operations: []string{`{"id":"op_1","group":"g","amount":1000,"currency":"eur",` + at + `}`, `{"id":"op_2","group":"g","amount":2010,"currency":"eur",` + at + `}`},
			effects:    []string{`{"id":"tr_1","kind":"transfer","reference":"g","amount":6000,"currency":"eur",` + at + `}`},
		},
		classes{rules.ClassMismatch: 2}, classes{rules.ClassMismatch: 1}, recon.FindMismatch, []string{"60.00 EUR", "30.10 EUR"},
	},
	{
		"B69 only white space around our reference is ours", shop{
			operations: []string{`{"id":"op_1510","amount":100,"currency":"eur",` + at + `}`},
			effects: []string{`{"id":"re_1","kind":"refund","reference":" op_1510 ","amount":100,"currency":"eur",` + at + `}`,
				`{"id":"re_2","kind":"refund","reference":"OP_1510","amount":100,"currency":"eur",` + at + `}`},
		},
		classes{rules.ClassMatched: 1}, classes{rules.ClassMatched: 1, rules.ClassOrphan: 1}, recon.FindOrphan, []string{"OP_1510", "op_1510"},
	},
	{
		"B66 a fee that is not known is no difference", shop{
			operations: []string{`{"id":"op_1","amount":100,"currency":"eur",` + at + `}`},
			effects:    []string{`{"id":"re_1","kind":"refund","reference":"op_1","amount":100,"currency":"eur",` + at + `}`},
		},
		classes{rules.ClassMatched: 1}, classes{rules.ClassMatched: 1}, "", nil,
	},
	{
		"B102 a refund is found by its own id, not by what it hangs under", shop{
			operations: []string{`{"id":"op_1","effect_id":"R1","parent":"P2","amount":100,"currency":"eur","state":"succeeded",` + at + `}`},
			effects: []string{`{"id":"R1","kind":"refund","parent":"P2","amount":100,"currency":"eur",` + at + `}`,
				`{"id":"P2","kind":"charge","amount":100,"currency":"eur",` + at + `}`},
		},
		classes{rules.ClassMatched: 1}, classes{rules.ClassMatched: 1}, "", nil,
	},
	{
		"B60 what a partial capture releases follows from its charge", shop{
			kind: "charge", action: "charge.capture",
			operations: []string{`{"id":"op_1","amount":1500,"currency":"eur",` + at + `}`},
			effects: []string{`{"id":"ch_1","kind":"charge","reference":"op_1","amount":1500,"currency":"eur",` + at + `}`,
				`{"id":"re_Z1","kind":"refund","parent":"ch_1","amount":500,"currency":"eur",` + at + `}`},
		},
		classes{rules.ClassMatched: 1}, classes{rules.ClassMatched: 1, rules.ClassExplained: 1}, "", nil,
	},
	{
		"a duplicate that was given back has ended", shop{
			kind: "charge", action: "charge.create",
			operations: []string{`{"id":"op_1","amount":1500,"currency":"eur",` + at + `}`},
			effects: []string{`{"id":"ch_1","kind":"charge","reference":"op_1","amount":1500,"currency":"eur",` + at + `}`,
				`{"id":"ch_2","kind":"charge","reference":"op_1","amount":1500,"currency":"eur","created_at":"2026-03-02T09:10:00Z"}`,
				`{"id":"re_1","kind":"refund","parent":"ch_2","amount":1500,"currency":"eur","created_at":"2026-03-02T09:20:00Z"}`},
		},
		classes{rules.ClassMatched: 1}, classes{rules.ClassMatched: 2, rules.ClassExplained: 1}, "", nil,
	},
	{
		"a parent's own total that its children exceed", shop{
			operations: []string{`{"id":"op_1","amount":450,"currency":"eur","parent":"ch_1",` + at + `}`, `{"id":"op_2","amount":450,"currency":"eur","parent":"ch_1","target":"order:2",` + at + `}`},
			effects: []string{`{"id":"re_1","kind":"refund","reference":"op_1","parent":"ch_1","amount":450,"currency":"eur","parent_total":450,` + at + `}`,
				`{"id":"re_2","kind":"refund","reference":"op_2","parent":"ch_1","amount":450,"currency":"eur","parent_total":450,` + at + `}`},
		},
		classes{rules.ClassMatched: 2}, classes{rules.ClassMatched: 2}, recon.FindMismatch, []string{"ch_1", "4.50 EUR", "9.00 EUR"},
	},
	{
		"B108 one payment and two refunds of it are three effects", shop{
			kind: "charge", action: "charge.create",
			operations: []string{`{"id":"op_1","amount":5200,"currency":"eur",` + at + `}`,
				`{"id":"op_2","action":"other.refund","amount":450,"currency":"eur","parent":"ch_1",` + at + `}`,
				`{"id":"op_3","action":"other.refund","amount":450,"currency":"eur","parent":"ch_1","target":"order:2",` + at + `}`},
			effects: []string{`{"id":"ch_1","kind":"charge","reference":"op_1","amount":5200,"currency":"eur",` + at + `}`,
				`{"id":"re_2","kind":"refund","reference":"op_2","parent":"ch_1","amount":450,"currency":"eur","parent_total":450,` + at + `}`,
				`{"id":"re_3","kind":"refund","reference":"op_3","parent":"ch_1","amount":450,"currency":"eur","parent_total":900,` + at + `}`},
		},
		classes{rules.ClassMatched: 3}, classes{rules.ClassMatched: 3}, "", nil,
	},
}

// audited holds the public cases whose names begin so.
func audited(t *testing.T, prefix string) {
	t.Parallel()
	ran := 0
	for _, tt := range publicCases {
		if !strings.HasPrefix(tt.name, prefix) {
			continue
		}
		ran++
		t.Run(tt.name, func(t *testing.T) {
			r := tt.shop.audit(t)
			wantClasses(t, r, tt.operations, tt.effects)
			var told []CompareFinding
			for _, f := range r.Findings {
				if f.Kind != recon.FindUnresolved {
					told = append(told, f)
				}
			}
			if tt.finding == "" {
				if len(told) > 0 {
					t.Errorf("findings: %+v", told)
				}
				return
			}
			if len(told) != 1 || told[0].Kind != tt.finding {
				t.Fatalf("findings: %+v, want one %s", told, tt.finding)
			}
			for _, word := range tt.says {
				if !strings.Contains(told[0].Reason, word) {
					t.Errorf("%q does not say %q", told[0].Reason, word)
				}
			}
		})
	}
	if ran == 0 {
		t.Fatalf("no case begins with %q", prefix)
	}
}

func TestB25_AnAuditTellsOfAYenAmountAHundredTimesTooSmall(t *testing.T)     { audited(t, "B25") }
func TestB34_TheLastDayOfAnAuditIsInIt(t *testing.T)                         { audited(t, "B34") }
func TestB35_AnAuditedMonthEndsInItsOwnZone(t *testing.T)                    { audited(t, "B35") }
func TestB39_ToAnAuditAnAmountThatFitsIsASuggestion(t *testing.T)            { audited(t, "B39") }
func TestB40_AnAuditSettlesAGroupByExactSums(t *testing.T)                   { audited(t, "B40") }
func TestB60_WhatAPartialCaptureReleasesIsExplainedInAnAudit(t *testing.T)   { audited(t, "B60") }
func TestB62_OneRefundForSeveralOperationsCountsOnceInAnAudit(t *testing.T)  { audited(t, "B62") }
func TestB66_AFeeThatIsNotKnownIsNoDifferenceInAnAudit(t *testing.T)         { audited(t, "B66") }
func TestB69_InAnAuditOnlyOuterSpacesMayDiffer(t *testing.T)                 { audited(t, "B69") }
func TestB102_AnAuditFindsAnEffectByItsOwnID(t *testing.T)                   { audited(t, "B102") }
func TestB104_AnAuditTellsOfADinarAmountThatTheProviderRounded(t *testing.T) { audited(t, "B104") }
func TestB108_AnAuditCountsAPaymentOnceWithItsRefunds(t *testing.T)          { audited(t, "B108") }
func TestAnAuditOfADuplicateThatWasGivenBackAndOfParentsTotals(t *testing.T) { audited(t, "a ") }
