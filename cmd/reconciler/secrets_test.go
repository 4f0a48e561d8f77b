//go:build e2e

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stripe/stripe-go/v82/webhook"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/daemon"
	"github.com/seed-1c4f4dc2/reconciler/escalation/slack/slacktest"
	"github.com/seed-1c4f4dc2/reconciler/internal/loopback"
	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/sources/httpapi/httpapitest"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// Marked secrets and marked personal data. Each is a text that nothing else holds.
const (
	markKey     = "rk_live_" + "Qx7keyQx7"
	markLetters = "Qx7lettersQx7"
	markHook    = "whsec_" + "Qx7hookQx7"
	markWrong   = "Qx7wrongQx7"
	markDB      = "Qx7databaseQx7"
	markToken   = "xoxb-" + "Qx7tokenQx7"
	markSigning = "Qx7signingQx7"
	markDest    = "Qx7destinationQx7"
	markStatus  = "Qx7statusQx7"
	markName    = "Zerafina Quimbleton"
	markMail    = "zerafina@example.org"
	markPhone   = "+15550100477"
	markCard    = "4000056655665556"
)

// personal is what a provider says of people in each of its objects.
var personal = map[string]any{
	"billing_details":        map[string]any{"name": markName, "email": markMail, "phone": markPhone},
	"payment_method_details": map[string]any{"card": map[string]any{"number": markCard, "fingerprint": markCard}},
	"receipt_email":          markMail, "customer_email": markMail, "description": "for " + markName, "statement_descriptor": markName,
}

// gateway stands before the fake Stripe and adds to every object what a real one says of
// people; or it answers as broken gateways do, and repeats what it was asked with.
type gateway struct {
	next   string
	manner atomic.Value // plain, refuses, breaks, babbles
	marked atomic.Int64 // objects that were given personal data
	bad    atomic.Int64 // replies in another manner
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	echo := fmt.Sprintf("%s asked by %s for %s", r.Header.Get("Authorization"), markName, markMail)
	manner := g.manner.Load()
	if strings.HasSuffix(r.URL.Path, "/account") { // not told, so that the question itself is put
		manner = "plain"
	}
	if manner != "plain" {
		g.bad.Add(1)
	}
	switch manner {
	case "refuses":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"type": "invalid_request_error", "code": echo, "param": markMail, "message": "Invalid API Key: " + echo}})
		return
	case "breaks":
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Request-Id", markName)
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, "<html>"+echo+"</html>")
		return
	case "babbles":
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"object": "list", "has_more": false, "TotalCount": 1, "Messages": [{"MessageID": "1", "ReceivedAt": %[3]q, "Status": %[2]q, "Metadata": {"op_id": "op_3"}}], "data": [{"id": "re_1", "object": "refund", "amount": %[1]q, "currency": %[2]q, "created": %[3]q, "status": %[2]q}]}`, markCard, markName, markMail)
		return
	}
	req, err := http.NewRequestWithContext(r.Context(), r.Method, g.next+r.URL.RequestURI(), r.Body)
	if err != nil {
		panic(err)
	}
	req.Header = r.Header.Clone()
	req.Header.Del("Accept-Encoding")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	var value any
	if json.Unmarshal(body, &value) == nil {
		body, _ = json.Marshal(g.mark(value)) // it was JSON
	}
	w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
	w.Header().Set("Request-Id", resp.Header.Get("Request-Id"))
	w.WriteHeader(resp.StatusCode)
	_, _ = w.Write(body)
}

// mark adds personal data to every object in a reply.
func (g *gateway) mark(value any) any {
	switch v := value.(type) {
	case []any:
		for i := range v {
			v[i] = g.mark(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = g.mark(v[key])
		}
		if kind, ok := v["object"].(string); ok && kind != "list" && kind != "event" {
			maps.Copy(v, personal)
			if m, ok := v["metadata"].(map[string]any); ok {
				m["customer"], m["email"] = markName, markMail
			}
			g.marked.Add(1)
		}
	}
	return value
}

// told keeps everything that came out of the product, by what it came from.
type told struct {
	mu  sync.Mutex
	all map[string]string
}

func (o *told) keep(from, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all[from] += text
}

// marked names the marks that stand in a text, however they are written.
func marked(text string) []string {
	var found []string
	lower := strings.ToLower(text)
	for _, mark := range []string{markKey, "Qx7", markName, "Zerafina", "Quimbleton", markMail, markPhone, markCard} {
		for _, form := range []string{mark, url.QueryEscape(mark), base64.StdEncoding.EncodeToString([]byte(mark))} {
			if strings.Contains(lower, strings.ToLower(form)) && !slices.Contains(found, mark) {
				found = append(found, mark)
			}
		}
	}
	return found
}

// stand is a ledger, providers and destinations around the real program.
type stand struct {
	*testing.T
	dir             string
	admin, url      string // of the database: the superuser's, and the daemon's with its password
	public, private string
	gateways        []*gateway // of Stripe and of Postmark
	stripe          *stripetest.Server
	letters         *httpapitest.Postmark
	slack           *slacktest.Server
	posted          atomic.Int64 // requests that the webhook destination got
	told            told
	environ         []string
}

func newStand(t *testing.T) *stand {
	t.Helper()
	s := &stand{T: t, dir: t.TempDir(), admin: pgtest.URL(t), public: loopback.FreeAddress(t), private: loopback.FreeAddress(t), told: told{all: map[string]string{}}}
	role := "secret_" + strings.ToLower(rand.Text()[:12])
	s.sql(`CREATE ROLE ` + role + ` LOGIN PASSWORD '` + markDB + `' IN ROLE reconciler_daemon`)
	t.Cleanup(func() { s.sql(`DROP ROLE ` + role) })
	u, err := url.Parse(s.admin)
	s.must(err)
	u.User = url.UserPassword(role, markDB)
	s.url = u.String()

	// Another system's table, with what it holds of people beside what is read, and where a
	// status belongs.
	s.sql(`CREATE TABLE public.payouts (id text, created_at timestamptz, status text, amount bigint, reference text, customer text)`)
	s.sql(`GRANT SELECT ON public.payouts TO ` + role)
	t.Cleanup(func() { s.sql(`DROP TABLE public.payouts`) })
	s.sql(`INSERT INTO public.payouts VALUES ('po_1', now() - interval '19 minutes', 'paid', 500, 'op_5', '` + markName + `'), ('po_2', now() - interval '18 minutes', '` + markMail + `', 600, 'op_6', '` + markCard + `')`)

	s.stripe, err = stripetest.Start(stripetest.Options{Now: time.Now, Seed: 1, Accounts: []stripetest.Account{{ID: "acct_1", Mode: "live", Key: markKey}}})
	s.must(err)
	t.Cleanup(s.stripe.Close)
	s.letters = httpapitest.StartPostmark(time.Now)
	t.Cleanup(s.letters.Close)
	front, post := s.before(s.stripe.URL()), s.before(s.letters.URL)
	s.slack, err = slacktest.Start(slacktest.Options{Token: markToken, Scopes: "chat:write"})
	s.must(err)
	t.Cleanup(s.slack.Close)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what came is what is looked at
		s.told.keep("webhook destination", fmt.Sprintf("%v %s\n", r.Header, body))
		if s.posted.Add(1) == 1 {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, markName+" "+r.Header.Get("Webhook-Signature")+" "+markDest)
		}
	}))
	t.Cleanup(hook.Close)

	s.write("key", markKey+"\n")
	s.write("status", markStatus+"\n")
	s.write("reconciler.yaml", fmt.Sprintf(`
listen: {public: %q, private: %q, token_file: %q}
database: {url: "${DATABASE}"}
sources:
  - {name: stripe-main, kind: stripe, settings: {account: acct_1, api_key_file: %q, api_url: %q, marker: op_id, per_second: 1000, webhook: {secrets: ["${HOOK}"]}}}
  - {name: letters, kind: postmark, settings: {servers: [{account: shop, token: "${LETTERS}"}], marker: op_id, lag: 1s, compare: recipient_and_subject, api_url: %q}}
  - name: shop
    kind: sqldb
    settings:
      url: "${SHOP}"
      effects:
        - {kind: payout, table: payouts, unit: minor, currency: EUR, consistency: strong, lag: 1s, statuses: {paid: completed},
           columns: {id: id, created_at: created_at, status: status, amount: amount, reference: reference}}
actions:
  payout.send: {source: shop, effect: payout, class: irreversible, check_after: 1s}
  letter.send: {source: letters, effect: email, class: irreversible, check_after: 1s}
  refund.create: {source: stripe-main, effect: refund, class: irreversible, repeat: same_key, check_after: 1s}
reports: {out: %q}
escalation:
  destinations:
    - {name: recon, kind: slack, settings: {channel: "#payments-recon", token: "${TOKEN}", signing_secret: "${SIGNING}", api_url: %q}}
    - {name: hook, kind: webhook, settings: {api_url: %q, secret: "${DEST}"}}
  ladders: {default: [{after: 0s, to: recon}, {after: 0s, to: hook}]}
`, s.public, s.private, s.path("status"), s.path("key"), front, post, s.path("nightly"), s.slack.URL(), hook.URL))
	s.environ = append(os.Environ(), "DATABASE="+s.url, "HOOK="+markHook, "LETTERS="+markLetters, "SHOP="+s.url, "TOKEN="+markToken, "SIGNING="+markSigning, "DEST="+markDest, "RECONCILER_DATABASE_URL=", "RECONCILER_CONFIG="+s.path("reconciler.yaml"))
	return s
}

// before starts a gateway and gives its address.
func (s *stand) before(next string) string {
	g := &gateway{next: next}
	g.manner.Store("plain")
	front := httptest.NewServer(g)
	s.Cleanup(front.Close)
	s.gateways = append(s.gateways, g)
	return front.URL
}

func (s *stand) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stand) path(name string) string { return filepath.Join(s.dir, name) }

func (s *stand) write(name, text string) {
	s.Helper()
	s.must(os.WriteFile(s.path(name), []byte(text), 0o600))
}

func (s *stand) sql(statement string) {
	s.Helper()
	ctx := context.WithoutCancel(s.Context())
	conn, err := pgx.Connect(ctx, s.admin)
	s.must(err)
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement)
	s.must(err)
}

// program is a process of the real program, whose words are kept.
func (s *stand) program(args ...string) *exec.Cmd {
	s.Helper()
	self, err := os.Executable()
	s.must(err)
	cmd := exec.CommandContext(context.WithoutCancel(s.Context()), self, args...)
	cmd.Args[0], cmd.Env, cmd.Dir = "reconciler", s.environ, s.dir
	return cmd
}

// does runs a verb to its end and wants the exit code. -1: any.
func (s *stand) does(code int, args ...string) string {
	s.Helper()
	cmd := s.program(args...)
	cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"action": "refund.create", "target": "order:1", "id": "op_1", "amount": 1000, "currency": "EUR", "parent": "ch_1",
		"request": {"name": %q, "email": %q, "card": %q}}`, markName, markMail, markCard))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); code >= 0 && got != code {
		s.Errorf("reconciler %s: exit code %d, want %d\n%s", strings.Join(args, " "), got, code, out)
	}
	s.told.keep("reconciler "+strings.Join(args[:min(2, len(args))], " "), string(out))
	return string(out)
}

// ask sends a request to one of the listeners and keeps the answer.
func (s *stand) ask(method, address string, header http.Header, body string) int {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), method, address, strings.NewReader(body))
	s.must(err)
	maps.Copy(req.Header, header)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	s.must(err)
	s.told.keep(method+" "+req.URL.Path, fmt.Sprintf("%v %s", resp.Header, answer))
	return resp.StatusCode
}

// deliver posts an event of a refund as Stripe does, signed with a secret.
func (s *stand) deliver(address, secret string, amount any) int {
	s.Helper()
	id := rand.Text()[:8]
	refund := map[string]any{"id": "re_" + id, "object": "refund", "amount": amount, "currency": "eur", "status": "succeeded", "charge": "ch_" + id, "created": time.Now().Unix(),
		"metadata": map[string]any{"op_id": "nobody_" + id, "email": markMail}}
	maps.Copy(refund, personal)
	body, err := json.Marshal(map[string]any{"id": "evt_" + id, "object": "event", "type": "refund.created", "created": time.Now().Unix(), "livemode": true,
		"api_version": "2025-08-27.basil", "data": map[string]any{"object": refund}})
	s.must(err)
	signed := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: body, Secret: secret, Timestamp: time.Now()})
	return s.ask(http.MethodPost, "http://"+address+"/webhooks/stripe-main", http.Header{"Stripe-Signature": {signed.Header}}, string(body))
}

func (s *stand) await(what string, is func() bool) {
	s.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatalf("waited a minute for %s", what)
		}
	}
}

// visit does to a running daemon what strangers and friends do.
func (s *stand) visit(public, private string) {
	s.Helper()
	s.await("the daemon", func() bool { return s.ask(http.MethodGet, "http://"+private+"/readyz", nil, "") == http.StatusOK })
	for secret, want := range map[string]int{markHook: http.StatusOK, markWrong: http.StatusBadRequest} {
		for _, amount := range []any{700, markCard} {
			if got := s.deliver(public, secret, amount); got != want {
				s.Errorf("a delivery is answered %d, want %d", got, want)
			}
		}
	}
	s.ask(http.MethodPost, "http://"+public+"/webhooks/stripe-main", nil, `{"name": "`+markName)
	s.ask(http.MethodPost, "http://"+public+"/webhooks/"+url.PathEscape(markName), nil, markCard)
	s.ask(http.MethodPost, "http://"+public+"/slack/actions", http.Header{"X-Slack-Signature": {"v0=" + markSigning}, "X-Slack-Request-Timestamp": {markMail}}, "payload="+url.QueryEscape(markName))
	for _, token := range []string{markStatus, markWrong} {
		for _, path := range []string{"op_2", "none"} {
			s.ask(http.MethodGet, "http://"+private+"/v1/operations/"+path, http.Header{"Authorization": {"Bearer " + token}}, "")
		}
	}
	s.await("a message in Slack and at the webhook", func() bool { return len(s.slack.Messages("payments-recon")) > 0 && s.posted.Load() > 1 })
	s.await("the taking in of events", func() bool { return s.count(`SELECT count(*) FROM reconciler.events WHERE state = 'new'`) == 0 })
	s.ask(http.MethodGet, "http://"+private+"/metrics", nil, "")
}

func (s *stand) count(query string) (n int) {
	s.Helper()
	conn, err := pgx.Connect(s.Context(), s.admin)
	s.must(err)
	defer conn.Close(context.WithoutCancel(s.Context()))
	s.must(conn.QueryRow(s.Context(), query).Scan(&n))
	return n
}

// serve runs the real daemon among people, and with providers that misbehave.
func (s *stand) serve() {
	s.Helper()
	var log bytes.Buffer
	cmd := s.program("serve")
	cmd.Stdout, cmd.Stderr = &log, &log
	s.must(cmd.Start())
	s.visit(s.public, s.private)
	s.must(cmd.Process.Signal(syscall.SIGHUP))
	s.must(cmd.Process.Signal(syscall.SIGTERM))
	s.must(cmd.Wait())
	if !strings.Contains(log.String(), "stopped") {
		s.Errorf("the log says little: %s", &log)
	}
	s.told.keep("serve", log.String())
}

// serveLoudly runs the same daemon in this process, logging all that it can say.
func (s *stand) serveLoudly() {
	s.Helper()
	environ := lookup(s.environ)
	text, err := os.ReadFile(s.path("reconciler.yaml"))
	s.must(err)
	c, err := config.Parse("reconciler.yaml", text, environ)
	s.must(err)
	c.Listen.Public, c.Listen.Private = "127.0.0.1:0", "127.0.0.1:0"
	var log lockedLog
	ctx, stop := context.WithCancel(s.Context())
	public, private, ended := make(chan string, 1), make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- daemon.Run(ctx, daemon.Options{Config: c, DatabaseURL: s.url, Tenant: "default", Holder: "loud/1",
			Log: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), Ready: func(a string) { private <- a }, ReadyPublic: func(a string) { public <- a }})
	}()
	s.visit(<-public, <-private)
	stop()
	s.must(<-ended)
	s.told.keep("serve, at debug", log.String())
}

// verbs runs the rest of the program, also where it fails.
func (s *stand) verbs() {
	s.Helper()
	s.write("rows.jsonl", fmt.Sprintf(`{"id": "re_9", "source": "stripe-main", "kind": "refund", "status": "completed", "amount": 100, "currency": "EUR", "created_at": "2026-01-02T08:00:00Z", "updated_at": "2026-01-02T08:00:00Z"}
{"id": "re_10", "source": "stripe-main", "kind": "refund", "status": "completed", "amount": -1, "currency": "EUR", "description": %q, "created_at": "2026-01-02T08:00:00Z", "updated_at": "2026-01-02T08:00:00Z"}
{"id": "re_13", "source": "stripe-main", "kind": "refund", "status": %[1]q, "amount": 1, "currency": "EUR", "created_at": "2026-01-02T08:00:00Z", "updated_at": "2026-01-02T08:00:00Z"}
{"id": "re_14", "source": "stripe-main", "kind": "refund", "status": "completed", "amount": %[1]q, "currency": "EUR", "created_at": "2026-01-02T08:00:00Z", "updated_at": "2026-01-02T08:00:00Z"}
{"id": "re_15", "source": "stripe-main", "kind": "refund", "status": "completed", "amount": 1, "currency": %[1]q, "created_at": %[1]q, "updated_at": "2026-01-02T08:00:00Z"}
{"id": "re_16", "source": %[1]q, "kind": %[1]q, "status": "completed", "amount": 1, "currency": "EUR", "created_at": "2026-01-02T08:00:00Z", "updated_at": %[1]q}
{"id": "re_17", %[1]q: 1}
`, markMail))
	s.write("balance.csv", "balance_transaction_id,created_utc,currency,gross,fee,net,reporting_category,source_id,charge_id,description\n"+
		"txn_1,2026-01-02 10:00:02,eur,-10.00,0.00,-10.00,refund,re_11,ch_1,"+markName+"\n"+"txn_2,2026-01-02 11:00:02,eur,-5.00,1.00,-5.00,refund,re_12,ch_3,"+markMail+"\n"+
		"txn_3,"+markMail+",eur,-5.00,0.00,-5.00,refund,re_18,ch_3,x\n"+"txn_4,2026-01-02 11:00:02,"+markCard+",-5.00,0.00,-5.00,refund,re_19,ch_3,x\n"+
		"txn_5,2026-01-02 11:00:02,eur,"+markMail+",0.00,-5.00,refund,re_20,ch_3,x\n"+"txn_6,2026-01-02 11:00:02,eur,-5.00,0.00,-5.00,"+markMail+",re_21,ch_3,x\n")
	s.does(-1, "import", "--source", "stripe-main", "rows.jsonl")
	s.does(-1, "import", "--source", "stripe-main", "balance.csv")
	for _, args := range [][]string{
		{"policy", "list"}, {"operations", "list"}, {"operations", "show", "op_1"}, {"operations", "show", "op_2"}, {"operations", "show", "op_3"}, {"operations", "verify"},
		{"findings", "list"}, {"inbox", "list"}, {"config", "show"}, {"config", "check"}, {"report", "--out", "reports"},
	} {
		s.does(0, args...)
		if args[1] == "show" || args[1] == "list" {
			s.does(0, append(slices.Clone(args), "--format", "json")...)
		}
	}
	for _, manner := range []string{"plain", "refuses", "breaks", "babbles"} {
		for _, g := range s.gateways {
			g.manner.Store(manner)
		}
		s.sql(`UPDATE reconciler.checks SET next_check = now() - interval '1 minute'`)
		s.sql(`UPDATE reconciler.source_state SET blind_since = NULL, blinds = 0, probe_at = NULL`)
		s.does(-1, "sweep")
		s.does(-1, "audit")
		s.does(-1, "reverify", "--format", "json")
		s.does(1, "doctor")
	}
	s.environ = append(s.environ, "SHOP="+strings.Replace(s.url, "/t_", "/none_", 1))
	s.sql(`UPDATE reconciler.checks SET next_check = now() - interval '1 minute'`)
	s.sql(`UPDATE reconciler.source_state SET blind_since = NULL, blinds = 0, probe_at = NULL`)
	s.does(-1, "sweep", "--source", "shop")
	s.does(1, "doctor")
	for _, g := range s.gateways {
		if g.bad.Load() < 6 {
			s.Errorf("only %d replies of %s were bad", g.bad.Load(), g.next)
		}
		g.manner.Store("plain")
	}
	for _, fault := range []string{"invalid_auth", "account_inactive", markToken} {
		s.slack.Spoil(slacktest.Fault{Method: "auth.test", Error: fault})
		s.does(1, "doctor", "--format", "json")
	}
	for _, address := range []string{
		"postgres://u:" + markDB + "@127.0.0.1:1/db", "postgres://u:" + markDB + "@127.0.0.1:nonsense/db", "postgres://u:" + markDB + "%@h/db",
		"host=127.0.0.1 port=1 user=u password=" + markDB, "host=127.0.0.1 port=x password='" + markDB, markDB, strings.Replace(s.admin, "/t_", "/none_", 1) + "&password=" + markDB,
	} {
		s.does(-1, "operations", "list", "--database-url", address)
	}
	for _, verb := range [][]string{{"migrate", "status"}, {"doctor"}, {"serve"}} {
		s.does(-1, append(verb, "--database-url", "postgres://u:"+markDB+"@127.0.0.1:nonsense/db")...)
	}
	s.write("inline.yaml", "sources:\n  - {name: s, kind: stripe, settings: {api_key: "+markKey+", webhook: {secrets: ["+markWrong+"]}}}\n"+
		"escalation: {destinations: [{name: d, kind: webhook, settings: {secret: "+markDest+", nope: 1}}]}\n")
	s.does(2, "config", "check", "--config", "inline.yaml")
	s.write("broken.yaml", "sources:\n  - name: s\n    settings:\n      signing_secret: '"+markSigning+"\n")
	s.does(2, "config", "check", "--config", "broken.yaml")
}

// dump gives every row of every table as text, but for what is declared to hold such data:
// the bytes of providers, and the request of an operation.
func (s *stand) dump() map[string]string {
	s.Helper()
	conn, err := pgx.Connect(s.Context(), s.admin)
	s.must(err)
	defer conn.Close(context.WithoutCancel(s.Context()))
	rows, err := conn.Query(s.Context(), `
		SELECT c.relname::text, string_agg(CASE WHEN a.atttypid = 'bytea'::regtype THEN format('encode(%I, ''escape'')', a.attname) ELSE format('%I::text', a.attname) END, ', ')
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE c.relnamespace = 'reconciler'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname <> 'blobs' AND (c.relname, a.attname) <> ('operations', 'request')
		GROUP BY 1`)
	s.must(err)
	columns := map[string]string{}
	var table, list string
	_, err = pgx.ForEachRow(rows, []any{&table, &list}, func() error { columns[table] = list; return nil })
	s.must(err)
	text := map[string]string{}
	for table, list := range columns {
		var all string
		s.must(conn.QueryRow(s.Context(), `SELECT coalesce(string_agg(concat_ws(' ', `+list+`), E'\n'), '') FROM reconciler.`+table).Scan(&all))
		text["table "+table] = all
	}
	return text
}

// Whatever the program does and however it fails: no secret, and nothing of the people whom
// providers speak of, is in a log, an output, an answer, a message, a report or the evidence.
func TestB100_NoSecretAndNoPersonGetsOut(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.does(0, "policy", "apply")
	s.does(0, "operations", "open")
	now := time.Now().UTC()
	s.write("operations.jsonl", fmt.Sprintf(`{"id": "op_2", "source": "stripe-main", "action": "refund.create", "target": "order:2", "parent": "ch_2", "amount": 2000, "currency": "EUR", "state": "unknown", "created_at": %[1]q, "sent_at": %[1]q, "marks": ["reference"]}
{"id": "op_3", "source": "letters", "action": "letter.send", "target": "letter:3", "state": "unknown", "created_at": %[1]q, "sent_at": %[1]q, "marks": ["reference"]}
{"id": "op_4", "source": "letters", "action": "letter.send", "target": "letter:4", "state": "unknown", "created_at": %[1]q, "sent_at": %[1]q, "marks": ["reference"]}
{"id": "op_5", "source": "shop", "action": "payout.send", "target": "payout:5", "amount": 500, "currency": "EUR", "state": "unknown", "created_at": %[1]q, "sent_at": %[1]q, "marks": ["reference"]}
{"id": "op_6", "source": "shop", "action": "payout.send", "target": "payout:6", "amount": 600, "currency": "EUR", "state": "unknown", "created_at": %[1]q, "sent_at": %[1]q, "marks": ["reference"]}
`, now.Add(-20*time.Minute).Format(time.RFC3339)))
	letter := s.letters.Send(httpapitest.Letter{Server: markLetters, Stream: "outbound", To: []string{markMail}, Subject: "For " + markName, Metadata: map[string]string{"op_id": "op_3", "name": markName}})
	s.letters.Log(letter, "Delivered")
	s.does(0, "operations", "import", "operations.jsonl")
	_, err := s.stripe.AddRefund(stripetest.Refund{Account: "acct_1", Mode: "live", Charge: "ch_2", Amount: 2500, Currency: "eur", Created: now.Add(-19 * time.Minute),
		Metadata: map[string]string{"op_id": "op_2"}})
	s.must(err)
	s.serve()
	s.serveLoudly()
	s.verbs()

	for _, m := range s.slack.Messages("payments-recon") {
		s.told.keep("Slack", fmt.Sprintf("%+v %s\n", m, m.Blocks))
	}
	for _, dir := range []string{"reports", "nightly"} {
		err := filepath.WalkDir(s.path(dir), func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(name)
			s.told.keep("report *"+filepath.Ext(name), string(text))
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
	maps.Copy(s.told.all, s.dump())
	for from, text := range s.told.all {
		if found := marked(text); len(found) > 0 {
			at := strings.Index(strings.ToLower(text), strings.ToLower(found[0]))
			t.Errorf("%s shows %q: …%s…", from, found, text[max(0, at-200):min(len(text), at+200)])
		}
	}
	s.reached()
}

// reached demands that there was something to be found: data that came in, and words that
// went out by every way.
func (s *stand) reached() {
	s.Helper()
	if n := s.gateways[0].marked.Load(); n < 5 {
		s.Errorf("only %d objects with personal data came in", n)
	}
	if n, _ := s.letters.Requests(); n < 2 {
		s.Errorf("only %d requests for letters", n)
	}
	for _, from := range []string{"serve", "serve, at debug", "Slack", "webhook destination", "GET /metrics", "GET /v1/operations/op_2", "POST /webhooks/stripe-main", "reconciler doctor", "reconciler sweep",
		"reconciler config show", "report *.html", "report *.csv", "report *.json", "report *.txt", "table looks", "table journal", "table notices", "table events", "table effects", "table findings"} {
		if len(s.told.all[from]) < 20 {
			s.Errorf("nothing came from %s", from)
		}
	}
	conn, err := pgx.Connect(s.Context(), s.admin)
	s.must(err)
	defer conn.Close(context.WithoutCancel(s.Context()))
	var request string
	s.must(conn.QueryRow(s.Context(), `SELECT request::text FROM reconciler.operations WHERE tenant = 'default' AND operation_id = 'op_1'`).Scan(&request))
	if !slices.Contains(marked(request), markMail) {
		s.Errorf("the request, which is declared to hold it, does not: %s", request)
	}
}

// lockedLog is a log that several goroutines write.
type lockedLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
