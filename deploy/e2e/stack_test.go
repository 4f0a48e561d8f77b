package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// program is a process of the test.
type program struct {
	cmd  *exec.Cmd
	said *output
	once sync.Once
}

// run starts a process, which ends with the test at the latest.
func run(t *testing.T, environ []string, path string, args ...string) *program {
	t.Helper()
	p := &program{cmd: exec.Command(path, args...), said: &output{}}
	p.cmd.Env = append(os.Environ(), environ...)
	p.cmd.Stdout, p.cmd.Stderr = p.said, p.said
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("%v; run `make deps`", err)
	}
	t.Cleanup(p.kill)
	return p
}

// kill ends it as a crash would, and waits.
func (p *program) kill() {
	p.once.Do(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait() // it was killed, which is what it says
	})
}

// output takes what a process says.
type output struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// await asks again and again until it is so.
func await(t *testing.T, what string, most time.Duration, is func() bool, said ...fmt.Stringer) {
	t.Helper()
	began := time.Now()
	for !is() {
		if time.Since(began) > most {
			t.Fatalf("after %s still not: %s\n%s", most, what, said)
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("%5.1f s until %s", time.Since(began).Seconds(), what)
}

func answers(address, path string) bool {
	resp, err := http.Get("http://" + address + path)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// receiver is where Alertmanager posts to.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex // guards states
	states map[string][]string
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{states: map[string][]string{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var message struct {
			Alerts []struct {
				Status string            `json:"status"`
				Labels map[string]string `json:"labels"`
			} `json:"alerts"`
		}
		if err := json.NewDecoder(req.Body).Decode(&message); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, a := range message.Alerts {
			name := a.Labels["alertname"]
			r.states[name] = append(r.states[name], a.Status)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// last is how an alert was told last: firing, resolved, or nothing.
func (r *receiver) last(alert string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.states[alert]; len(s) > 0 {
		return s[len(s)-1]
	}
	return ""
}

// heard is all that was told of an alert.
func (r *receiver) heard(alert string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.states[alert], " ")
}

// server is a running Prometheus.
type server struct{ address string }

// sample is one series of an answer.
type sample struct {
	Metric map[string]string `json:"metric"`
	Value  [2]any            `json:"value"`
}

func (s server) ask(ctx context.Context, expr string) ([]sample, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.address+"/api/v1/query?query="+url.QueryEscape(expr), nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Status, Error string
		Data          struct{ Result []sample }
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, err
	}
	if answer.Status != "success" {
		return nil, fmt.Errorf("%s", answer.Error)
	}
	return answer.Data.Result, nil
}

// has reports whether the query gives any series.
func (s server) has(t *testing.T, expr string) bool {
	t.Helper()
	got, err := s.ask(t.Context(), expr)
	return err == nil && len(got) > 0
}

// number is the one value that a query gives.
func (s server) number(t *testing.T, expr string) string {
	t.Helper()
	got, err := s.ask(t.Context(), expr)
	if err != nil || len(got) != 1 {
		return fmt.Sprintf("%d series, %v", len(got), err)
	}
	return fmt.Sprint(got[0].Value[1])
}
