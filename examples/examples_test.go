// Package examples_test runs the program, with the worked configurations, against the small
// providers beside them.
package examples_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/examples/crm"
	"github.com/seed-1c4f4dc2/reconciler/examples/tickets"
	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/sources/httpapi"
	"github.com/seed-1c4f4dc2/reconciler/sources/httpapi/httpapitest"
)

// stand is the program with a database and a configuration.
type stand struct {
	t       *testing.T
	program string
	config  string
	env     []string
	start   time.Time
}

func newStand(t *testing.T, config, variable string, provider http.Handler) *stand {
	t.Helper()
	program := filepath.Join(t.TempDir(), "reconciler")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../cmd/reconciler").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	srv := httptest.NewServer(provider)
	t.Cleanup(srv.Close)
	s := &stand{t: t, program: program, config: config, start: time.Now().UTC().Truncate(time.Second)}
	s.env = append(os.Environ(), "RECONCILER_DATABASE_URL="+pgtest.URL(t), variable+"_URL="+srv.URL, variable+"_TOKEN=TESTONLY")
	s.run(nil, "policy", "apply")
	return s
}

// run runs a verb and reads its answer into v, where one is wanted.
func (s *stand) run(v any, args ...string) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), s.program, append(args, "--config", s.config, "--format", "json")...)
	cmd.Env = s.env
	out, err := cmd.Output()
	if err != nil {
		var stderr []byte
		if exit, ok := err.(*exec.ExitError); ok {
			stderr = exit.Stderr
		}
		s.t.Fatalf("reconciler %v: %v\n%s%s", args, err, out, stderr)
	}
	if v == nil {
		return
	}
	if err := json.Unmarshal(out, v); err != nil {
		s.t.Fatalf("reconciler %v: %v\n%s", args, err, out)
	}
}

// lose records operations whose answer was lost an hour ago.
func (s *stand) lose(line string, ids ...string) {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "operations.jsonl")
	f, err := os.Create(file)
	if err != nil {
		s.t.Fatal(err)
	}
	at := s.start.Add(-time.Hour).Format(time.RFC3339)
	for _, id := range ids {
		fmt.Fprintf(f, `{"id":%q,"state":"unknown","created_at":%q,"sent_at":%q,%s}`+"\n", id, at, at, line)
	}
	if err := f.Close(); err != nil {
		s.t.Fatal(err)
	}
	s.run(nil, "operations", "import", file)
}

// sweep sweeps some minutes after the start.
func (s *stand) sweep(minutes int) {
	s.t.Helper()
	s.run(nil, "sweep", "--now", s.start.Add(time.Duration(minutes)*time.Minute).Format(time.RFC3339))
}

// state gives an operation's state and effect.
func (s *stand) state(id string) string {
	s.t.Helper()
	var shown struct {
		Operation struct {
			State  string `json:"state"`
			Effect string `json:"effect_id"`
		} `json:"operation"`
	}
	s.run(&shown, "operations", "show", id)
	if shown.Operation.Effect == "" {
		return shown.Operation.State
	}
	return shown.Operation.State + " " + shown.Operation.Effect
}

// findings counts findings by kind.
func (s *stand) findings() map[string]int {
	s.t.Helper()
	var list []struct {
		Kind string `json:"kind"`
	}
	s.run(&list, "findings", "list")
	kinds := map[string]int{}
	for _, f := range list {
		kinds[f.Kind]++
	}
	return kinds
}

func (s *stand) want(states map[string]string) {
	s.t.Helper()
	for id, want := range states {
		if got := s.state(id); got != want {
			s.t.Errorf("operation %s is %s, want %s", id, got, want)
		}
	}
}

func TestTicketsWhoseAnswerWasLost(t *testing.T) {
	desk := &tickets.Desk{}
	s := newStand(t, "tickets/reconciler.yaml", "TICKETS", desk.Handler())
	sent := s.start.Add(-time.Hour)
	once := strconv.Itoa(desk.Open("op-once", "key-1", sent))
	first := strconv.Itoa(desk.Open("op-twice", "key-2", sent))
	desk.Open("op-twice", "key-2", sent.Add(time.Minute)) // the key holds it to one
	desk.Open("op-twice", "another-key", sent.Add(2*time.Minute))
	s.lose(`"source":"tickets","action":"ticket.open","target":"order:4417","marks":["reference"]`, "op-once", "op-twice", "op-never")

	desk.Maintain(true)
	s.sweep(0)
	s.want(map[string]string{"op-once": "unknown", "op-twice": "unknown", "op-never": "unknown"})

	desk.Maintain(false)
	for _, minutes := range []int{15, 30, 90, 240, 500} {
		s.sweep(minutes)
	}
	s.want(map[string]string{"op-once": "succeeded " + once, "op-twice": "succeeded " + first, "op-never": "manual_review"})
	if got := s.findings(); got["duplicate"] != 1 || got["missing"] != 1 {
		t.Errorf("findings are %v, want one duplicate and one missing", got)
	}
}

func TestRecordsWhoseAnswerWasLost(t *testing.T) {
	records := &crm.CRM{}
	s := newStand(t, "crm/reconciler.yaml", "CRM", records.Handler())
	sent := s.start.Add(-time.Hour)
	id := records.Upsert("op-there", "42.00", "EUR", sent)
	if again := records.Upsert("op-there", "42.00", "EUR", sent.Add(time.Minute)); again != id {
		t.Fatalf("an upsert that was sent twice made %s and %s", id, again)
	}
	records.Upsert("op-other-amount", "42.10", "EUR", sent)
	records.Confuse("op-several")
	s.lose(`"source":"crm","action":"record.upsert","target":"order:4417","marks":["reference"],"amount":4200,"currency":"EUR"`, "op-there", "op-other-amount", "op-several", "op-never")
	for _, minutes := range []int{0, 15, 30, 90, 240, 500} {
		s.sweep(minutes)
	}
	s.want(map[string]string{"op-there": "succeeded " + id, "op-never": "manual_review", "op-several": "unknown"})
	if got := s.findings(); got["mismatch"] != 1 || got["missing"] != 1 || got["duplicate"] != 0 {
		t.Errorf("findings are %v, want one mismatch, one missing and no duplicate", got)
	}
}

func TestLettersWhoseAnswerWasLost(t *testing.T) {
	sent := time.Now().Add(-time.Hour)
	post := httpapitest.StartPostmark(func() time.Time { return sent })
	t.Cleanup(post.Close)
	s := newStand(t, "letters/reconciler.yaml", "LETTERS", post.Config.Handler)
	letter := func(operation, to string) string {
		return post.Send(httpapitest.Letter{Server: "TESTONLY", To: []string{to}, Subject: "Your refund", Metadata: map[string]string{"op_id": operation}})
	}
	delivered, bounced := letter("op-delivered", "jane@example.com"), letter("op-bounced", "jane@example.com")
	letter("op-elsewhere", "joan@example.com")
	post.Log(delivered, "Delivered")
	post.Log(bounced, "Bounced")
	s.lose(`"source":"letters","action":"email.send","marks":["reference"],"target":"`+httpapi.HashTarget("jane@example.com")+`"`,
		"op-delivered", "op-bounced", "op-elsewhere", "op-never")
	for _, minutes := range []int{0, 15, 30, 90, 240, 500} {
		s.sweep(minutes)
	}
	s.want(map[string]string{"op-delivered": "succeeded " + delivered, "op-bounced": "failed " + bounced, "op-elsewhere": "manual_review", "op-never": "manual_review"})
	if got := s.findings(); got["mismatch"] != 1 || got["missing"] != 1 {
		t.Errorf("findings are %v, want one mismatch and one missing", got)
	}

	sent = sent.Add(time.Minute)
	post.Log(delivered, "Bounced")
	s.run(nil, "reverify", "--now", s.start.Add(48*time.Hour).Format(time.RFC3339))
	s.want(map[string]string{"op-delivered": "manual_review " + delivered})
	if got := s.findings(); got["reversed"] != 1 {
		t.Errorf("findings are %v, want one reversed", got)
	}
}
