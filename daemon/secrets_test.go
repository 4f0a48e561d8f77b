package daemon

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// leaks are marked secrets and personal data, none of which may come out anywhere.
var leaks = []string{"TESTONLY", "jane@example.com", "Jane Doe", "v1=abc"}

// A life in which secrets and personal data come in from all sides: in the address of a
// database that is away, in deliveries that are taken and refused, and in what a provider
// says of its refusal. Nothing of it comes out.
func TestB100_NoSecretAndNoPersonalDataComesOutOfTheDaemon(t *testing.T) {
	t.Parallel()
	stripe, slack := startFakes(t)
	direct := pgtest.URL(t)
	gate, through := newGate(t, direct)
	through = strings.Replace(through, "@", ":TESTONLY@", 1)
	c := parse(t, strings.Replace(hooked, `{sweep: "off", reverify: "off", audit: "off"}`, `{reverify: "off"}`, 1)+`
escalation:
  destinations: [{name: recon, kind: slack, settings: {channel: "#payments-recon", token: "${TOKEN}", api_url: "${SLACK_URL}"}}]
  ladders: {default: [{after: 0s, to: recon}]}
`, map[string]string{"KEY": "sk_live_TESTONLY", "STRIPE_URL": talkative(t, stripe.URL()), "SECRET": hookSecret, "OLD": "whsec_OLD",
		"TOKEN": "xoxb-TESTONLY", "SLACK_URL": slack.URL()})
	record(t, c.Policies, direct)
	if _, err := stripe.AddRefund(stripetest.Refund{
		Account: "acct_1", Mode: "live", Charge: "ch_op_wrong", Amount: 1001, Currency: "eur", Created: time.Now().Add(-time.Hour),
		Metadata: map[string]string{"op_id": "op_wrong", "customer": "Jane Doe <jane@example.com>"},
	}); err != nil {
		t.Fatal(err)
	}
	r := start(t, c, through)
	r.await("/readyz", 503, "database has not answered")
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(r.log.String(), "the database is away"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not say that the database is away:\n%s", r.log)
		}
	}
	gate.open()
	r.await("/readyz", 200, "ready")
	answers := r.deliverPersonal()
	r.await("/metrics", 200, `^reconciler_findings\{kind="mismatch"\} 1$`)
	for deadline := time.Now().Add(30 * time.Second); len(slack.Messages("payments-recon")) == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("nobody is told:\n%s", r.log)
		}
	}
	_, page := r.get("/metrics")
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(r.log.String(), "HTTP 400") {
		t.Errorf("the refusal of the provider is not told:\n%s", r.log)
	}
	outputs := map[string]string{"log": r.log.String(), "metrics": page, "answers": answers, "ledger": texts(t, direct)}
	for _, m := range slack.Messages("payments-recon") {
		outputs["Slack"] += m.Text + string(m.Blocks)
	}
	for where, text := range outputs {
		for _, leak := range leaks {
			if i := strings.Index(text, leak); i >= 0 {
				t.Errorf("the %s shows %q: …%s…", where, leak, text[max(0, i-200):min(len(text), i+100)])
			}
		}
	}
}

// talkative stands before a provider, and refuses the first list of each form, those of sweeps
// and of audits, with a text that quotes a customer.
func talkative(t *testing.T, to string) string {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	var refused sync.Map // what was asked for, by the names of its parameters
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, again := refused.LoadOrStore(fmt.Sprint(slices.Sorted(maps.Keys(r.URL.Query()))), true)
		if r.URL.Path != "/v1/refunds" || again {
			proxy.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":{"type":"invalid_request_error","code":"resource_missing","param":"customer","message":"No such customer: jane@example.com (key sk_live_TESTONLY)"}}`)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// deliverPersonal delivers bodies with personal data: signed, forged, cut, and of a kind
// that nobody asked for. It gives what was answered.
func (r *running) deliverPersonal() string {
	r.Helper()
	body := func(id, kind string) []byte {
		return fmt.Appendf(nil, `{"id":%q,"object":"event","api_version":"2025-08-27.basil","type":%q,"livemode":true,"created":%d,
			"data":{"object":{"id":"cus_1","object":"customer","email":"jane@example.com","name":"Jane Doe"}}}`, id, kind, time.Now().Unix())
	}
	var all strings.Builder
	for _, d := range []delivery{
		{body: body("evt_taken", "customer.created")}, {body: body("evt_forged", "customer.created"), secret: "whsec_FORGED"},
		{body: body("evt_cut", "customer.created")[:120]}, {body: body("evt_odd", "nothing.known")},
	} {
		status, said := d.post(r, r.public)
		fmt.Fprintln(&all, status, said)
	}
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, r.public+"/webhooks/stripe-main", bytes.NewReader(body("evt_bare", "customer.created")))
	if err != nil {
		r.Fatal(err)
	}
	req.Header.Set("Stripe-Signature", "t=1,v1=abc")
	status, said := do(r, req)
	if status != http.StatusBadRequest {
		r.Errorf("a forged delivery is answered %d", status)
	}
	fmt.Fprintln(&all, status, said)
	return all.String()
}

// texts is every row of the ledger as text, but for what the acting side and providers gave
// to be kept as it is, which is dropped in its time.
func texts(t *testing.T, url string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, err := conn.Query(t.Context(), `SELECT t.relname FROM pg_class t WHERE t.relnamespace = 'reconciler'::regnamespace AND t.relkind = 'r' AND t.relname <> 'blobs'`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, table := range tables {
		rows, err := conn.Query(t.Context(), `SELECT x::text FROM reconciler.`+pgx.Identifier{table}.Sanitize()+` x`)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			fmt.Fprintln(&all, table, recon.Printable(line))
		}
	}
	return all.String()
}
