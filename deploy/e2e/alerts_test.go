package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/internal/loopback"
	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

const (
	account = "acct_1"
	apiKey  = "rk_live_TESTONLY" // and every other secret
	marker  = "op_id"
)

// installation is one reconciler with everything around it.
type installation struct {
	*testing.T
	dir      string
	binary   string
	database string
	config   string
	private  string
	stripe   *stripetest.Server
	daemon   *program
	told     *receiver
	prom     server
	programs []fmt.Stringer
}

func install(t *testing.T) *installation {
	t.Helper()
	i := &installation{T: t, dir: t.TempDir(), database: pgtest.URL(t), private: loopback.FreeAddress(t), told: newReceiver(t)}
	i.binary = filepath.Join(i.dir, "reconciler")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", i.binary, "./cmd/reconciler")
	build.Dir = "../.." // the product's own module
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, said)
	}
	var err error
	if i.stripe, err = stripetest.Start(stripetest.Options{
		Now: time.Now, Accounts: []stripetest.Account{{ID: account, Mode: "live", Key: "sk_live_TESTONLY", ReadKey: apiKey}},
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.stripe.Close)
	i.config = write(t, i.dir, "reconciler.yaml", fmt.Sprintf(`
listen: {public: %q, private: %q}
sources:
  - name: stripe-main
    kind: stripe
    settings: {account: %s, api_key: "${TEST_SECRET}", api_url: %q, marker: %s, webhook: {secrets: ["${TEST_SECRET}"]}}
actions:
  refund.create: {source: stripe-main, effect: refund, class: irreversible, repeat: same_key}
escalation:
  destinations:
    - {name: pager, kind: webhook, settings: {url: %q, secret: "${TEST_SECRET}"}}
`, loopback.FreeAddress(t), i.private, account, i.stripe.URL(), marker, i.told.URL))
	return i
}

func (i *installation) environ() []string {
	return []string{"RECONCILER_DATABASE_URL=" + i.database, "TEST_SECRET=" + apiKey}
}

// verb runs one verb of the program.
func (i *installation) verb(args ...string) string {
	i.Helper()
	cmd := exec.CommandContext(i.Context(), i.binary, append(args, "--config", i.config)...)
	cmd.Env = append(os.Environ(), i.environ()...)
	said, err := cmd.CombinedOutput()
	if err != nil {
		i.Fatalf("reconciler %v: %v\n%s", args, err, said)
	}
	return string(said)
}

// serve starts the daemon, as a process.
func (i *installation) serve() {
	i.Helper()
	i.daemon = run(i.T, i.environ(), i.binary, "serve", "--config", i.config)
	i.programs = append(i.programs, i.daemon.said)
	await(i.T, "the daemon is ready", 15*time.Second, func() bool { return answers(i.private, "/readyz") }, i.programs...)
}

// watch starts Prometheus with the shipped rules, and Alertmanager.
func (i *installation) watch() {
	i.Helper()
	rules, err := filepath.Abs("../prometheus/reconciler.rules.yml")
	if err != nil {
		i.Fatal(err)
	}
	thresholds := write(i.T, i.dir, "thresholds.yml", `
groups:
  - name: thresholds
    rules:
      - {record: "reconciler:oldest_unknown_warning:seconds", expr: vector(3), labels: {source: stripe-main, action: refund.create}}
`)
	i.prom = server{loopback.FreeAddress(i.T)}
	alertmanager := loopback.FreeAddress(i.T)
	am := run(i.T, nil, "prometheus-alertmanager", "--config.file="+write(i.T, i.dir, "alertmanager.yml", fmt.Sprintf(`
route: {receiver: test, group_by: [alertname], group_wait: 0s, group_interval: 1s, repeat_interval: 1h}
receivers: [{name: test, webhook_configs: [{url: %q, send_resolved: true}]}]
`, i.told.URL)), "--storage.path="+filepath.Join(i.dir, "am"), "--web.listen-address="+alertmanager, "--cluster.listen-address=")
	prom := run(i.T, nil, "prometheus", "--config.file="+write(i.T, i.dir, "prometheus.yml", fmt.Sprintf(`
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [%q, %q]
scrape_configs: [{job_name: reconciler, static_configs: [{targets: [%q]}]}]
alerting: {alertmanagers: [{static_configs: [{targets: [%q]}]}]}
`, rules, thresholds, i.private, alertmanager)), "--storage.tsdb.path="+filepath.Join(i.dir, "tsdb"), "--web.listen-address="+i.prom.address)
	i.programs = append(i.programs, am.said, prom.said)
	await(i.T, "Prometheus and Alertmanager are ready", 20*time.Second, func() bool {
		return answers(i.prom.address, "/-/ready") && answers(alertmanager, "/-/ready")
	}, i.programs...)
}

// lose records an operation whose answer was lost, as an actor in any language does.
func (i *installation) lose(id string) {
	i.Helper()
	conn, err := pgx.Connect(i.Context(), i.database)
	if err != nil {
		i.Fatal(err)
	}
	defer conn.Close(i.Context())
	for _, sql := range []string{
		`SELECT reconciler.open_operation(jsonb_build_object('id', $1::text, 'key', 'key-' || $1, 'action', 'refund.create', 'target', 'order:1',
			'parent', 'ch_1', 'amount', 4200, 'currency', 'EUR', 'request', '{}'::jsonb))`,
		`SELECT reconciler.finish_attempt(jsonb_build_object('operation_id', $1::text, 'class', 'indeterminate', 'error_code', 'timeout',
			'token', reconciler.claim_operation(jsonb_build_object('operation_id', $1::text, 'holder', 'test')) ->> 'token'))`,
	} {
		if _, err := conn.Exec(i.Context(), sql, id); err != nil {
			i.Fatal(err)
		}
	}
}

const oldest = "ReconcilerOldestUnknown"

func TestB95_AnUnknownOperationFiresUntilItClosesAlsoWhileTheDaemonIsDead(t *testing.T) {
	i := install(t)
	i.verb("policy", "apply")
	i.lose("op-lost")
	began := time.Now()
	i.watch()
	i.serve()
	await(t, "the alert is told", 20*time.Second, func() bool { return i.told.last(oldest) == "firing" }, i.programs...)
	if got := i.prom.number(t, `sum(reconciler_operations{state="unknown"})`); got != "1" {
		t.Errorf("unknown operations: %s", got)
	}
	i.looksAtTheDashboard()

	i.daemon.kill()
	await(t, "Prometheus sees it dead", 10*time.Second, func() bool { return i.prom.has(t, `up{job="reconciler"} == 0`) })
	time.Sleep(3 * time.Second) // several evaluations without the daemon's series
	if i.prom.has(t, "reconciler_operations") || !i.prom.has(t, fmt.Sprintf(`ALERTS{alertname=%q, alertstate="firing"}`, oldest)) {
		t.Error("the alert does not fire while the daemon is dead")
	}
	if heard := i.told.heard(oldest); strings.Contains(heard, "resolved") {
		t.Errorf("the alert was told as %s while nothing had changed but the daemon's death", heard)
	}

	// What happened is found by a look, and the daemon is back.
	if _, err := i.stripe.AddCharge(stripetest.Charge{ID: "ch_1", Account: account, Mode: "live", Amount: 9000, Currency: "eur", Created: began}); err != nil {
		t.Fatal(err)
	}
	if _, err := i.stripe.AddRefund(stripetest.Refund{ID: "re_1", Account: account, Mode: "live", Charge: "ch_1", Amount: 4200, Currency: "eur",
		Status: "succeeded", Created: began, Metadata: map[string]string{marker: "op-lost"}, Key: "key-op-lost"}); err != nil {
		t.Fatal(err)
	}
	i.verb("sweep", "--now", time.Now().Add(10*time.Minute).Format(time.RFC3339))
	if said := i.verb("operations", "show", "op-lost"); !strings.Contains(said, "succeeded") {
		t.Fatalf("the sweep did not close it:\n%s", said)
	}
	i.serve()
	await(t, "the alert is told as over", 20*time.Second, func() bool { return i.told.last(oldest) == "resolved" }, i.programs...)
	if got := i.prom.number(t, `sum(reconciler_operations_closed_total{by="evidence", outcome="succeeded"})`); got != "1" {
		t.Errorf("closed by evidence: %s", got)
	}
	if took := time.Since(began); took > 40*time.Second {
		t.Errorf("it took %s, want at most 40 s", took)
	}
}

// looksAtTheDashboard runs every query of the dashboard and of the provisioned alert.
func (i *installation) looksAtTheDashboard() {
	i.Helper()
	queries := dashboardQueries(i.T)
	if len(queries) < 30 {
		i.Errorf("%d queries", len(queries))
	}
	queries["alert: the provisioned one"] = provisionedQuery(i.T)
	// Rates need two scrapes, and what is shown of runs the first run.
	await(i.T, "the first sweep has ended and was scraped", 25*time.Second, func() bool {
		return i.prom.has(i.T, `reconciler_run_last_success_timestamp_seconds{run="sweep/stripe-main"} > 0`) &&
			i.prom.has(i.T, `rate(reconciler_provider_requests_total[5s])`)
	}, i.programs...)
	for title, expr := range queries {
		got, err := i.prom.ask(i.Context(), inGrafana(expr))
		if err != nil || len(got) == 0 {
			i.Errorf("%s: %d series, %v\n%s", title, len(got), err, expr)
		}
	}
}

// inGrafana puts in what Grafana does.
func inGrafana(expr string) string {
	return strings.NewReplacer("$job", ".*", "$__rate_interval", "5s").Replace(expr)
}

// provisionedQuery is that of the provisioned alert.
func provisionedQuery(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../grafana/provisioning/alerting/reconciler.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct {
				Condition   string
				Annotations map[string]string
				Data        []struct {
					RefID         string `yaml:"refId"`
					DatasourceUID string `yaml:"datasourceUid"`
					Model         struct{ Expr, Expression string }
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	rule := file.Groups[0].Rules[0]
	if rule.Condition != rule.Data[1].RefID || rule.Data[1].Model.Expression != rule.Data[0].RefID || rule.Data[0].DatasourceUID != dataSourceUID {
		t.Errorf("the parts of the rule do not name each other: %+v", rule)
	}
	if page := regexp.MustCompile(`docs/runbooks/\w+\.md$`).FindString(rule.Annotations["runbook_url"]); page == "" {
		t.Error("no runbook")
	} else if _, err := os.Stat(filepath.Join("../..", page)); err != nil {
		t.Error(err)
	}
	return rule.Data[0].Model.Expr
}
