package daemon

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// asked is one question for the status of operations.
func (r *running) asked(path, token string) (int, string) {
	r.Helper()
	req, err := http.NewRequest(http.MethodGet, r.base+path, nil)
	if err != nil {
		r.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		r.Fatal(err)
	}
	if kind := resp.Header.Get("Content-Type"); kind != "application/json" {
		r.Errorf("%s: content type %q", path, kind)
	}
	return resp.StatusCode, string(body)
}

func TestTheStatusOfOperationsIsToldToHoldersOfTheToken(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	databaseURL := pgtest.URL(t)
	text := strings.Replace(oneSource, `private: "127.0.0.1:0"`, `private: "127.0.0.1:0", token_file: "`+file+`"`, 1)
	d := start(t, parse(t, text, map[string]string{"KEY": "sk_live_x", "STRIPE_URL": "http://127.0.0.1:1"}), databaseURL)
	d.await("/readyz", http.StatusOK, "ready")
	l, err := ledger.Open(t.Context(), ledger.Options{URL: databaseURL, MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	want := standings(t, l)

	for name, test := range map[string]struct {
		path, token string
		status      int
		says        string
	}{
		"no token":             {"/v1/operations/done", "", 401, "listen.token_file"},
		"another token":        {"/v1/operations/done", "Bearer s3cre", 401, "Bearer"},
		"another scheme":       {"/v1/operations/done", "Basic s3cret", 401, "Bearer"},
		"a longer token":       {"/v1/operations/done", "Bearer s3cret2", 401, "Bearer"},
		"the token alone":      {"/v1/operations/done", "s3cret", 401, "Bearer"},
		"no token after all":   {"/v1/operations/done", "Bearer ", 401, "Bearer"},
		"a scheme in small":    {"/v1/operations/none", "bearer s3cret", 404, "there is no operation none"}, // RFC 9110: either case
		"no such operation":    {"/v1/operations/none", "Bearer s3cret", 404, "there is no operation none"},
		"neither":              {"/v1/operations", "Bearer s3cret", 400, "either key or reference"},
		"both":                 {"/v1/operations?key=a&reference=b", "Bearer s3cret", 400, "either key or reference"},
		"another question too": {"/v1/operations?key=a&state=unknown", "Bearer s3cret", 400, "either"},
		"nothing has this key": {"/v1/operations?key=none", "Bearer s3cret", 200, "[]"},
	} {
		if status, body := d.asked(test.path, test.token); status != test.status || !strings.Contains(body, test.says) {
			t.Errorf("%s: %d %s, want %d with %q", name, status, body, test.status, test.says)
		}
	}
	for id, w := range want {
		status, body := d.asked("/v1/operations/"+url.PathEscape(id), "Bearer s3cret")
		var got map[string]any
		if err := json.Unmarshal([]byte(body), &got); err != nil || status != 200 {
			t.Fatalf("%s: %d %s, %v", id, status, body, err)
		}
		if diff := cmp.Diff(w, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
		for _, query := range []string{"key=" + url.QueryEscape("k-"+id), "reference=" + url.QueryEscape("inv-"+id)} {
			_, body := d.asked("/v1/operations?"+query, "Bearer s3cret")
			var list []map[string]any
			if err := json.Unmarshal([]byte(body), &list); err != nil {
				t.Fatalf("%s: %s, %v", query, body, err)
			}
			if diff := cmp.Diff([]map[string]any{w}, list); diff != "" {
				t.Errorf("%s (-want +got):\n%s", query, diff)
			}
		}
	}

	if err := os.WriteFile(file, []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _ := d.asked("/v1/operations/done", "Bearer s3cret"); status != 401 {
		t.Errorf("the old token: %d", status)
	}
	if status, _ := d.asked("/v1/operations/done", "Bearer changed"); status != 200 {
		t.Errorf("the new token: %d", status)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if status, _ := d.asked("/v1/operations/done", "Bearer "); status != 503 {
		t.Errorf("without the file: %d", status)
	}
}

// standings makes an operation in each of four situations and says what is told of them.
func standings(t *testing.T, l *ledger.Ledger) map[string]map[string]any {
	t.Helper()
	want := map[string]map[string]any{}
	for id, c := range map[string]struct {
		class   recon.AttemptClass
		verdict string
		state   recon.State
		final   bool
		note    string
	}{
		"done":       {recon.ClassSucceeded, "succeeded", recon.Succeeded, true, "It is done. Do not do it again."},
		"refused":    {recon.ClassRefused, "failed_safe_to_retry", recon.Failed, true, "It did not happen and will not. Doing it after all is a new decision."},
		"not/sent ü": {"", "failed_safe_to_retry", recon.Pending, false, "It did not happen. The same call may be made again later."},
		"lost":       {recon.ClassIndeterminate, "unknown_reconciliation_required", recon.Unknown, false, "The outcome is being checked. Report neither success nor failure."},
	} {
		_, err := l.OpenOperation(t.Context(), ledger.OpenRequest{ID: recon.OperationID(id), Key: "k-" + id, Reference: "inv-" + id,
			Action: "refund.create", Target: "order:" + id, Request: json.RawMessage(`{"customer":"Jane"}`)})
		if err != nil {
			t.Fatal(err)
		}
		want[id] = map[string]any{"operation_id": id, "state": string(c.state), "verdict": c.verdict, "final": c.final, "note": c.note}
		if c.class == "" {
			continue
		}
		claim, err := l.Claim(t.Context(), ledger.ClaimRequest{OperationID: recon.OperationID(id), Holder: "test"})
		if err != nil {
			t.Fatal(err)
		}
		f := ledger.FinishRequest{OperationID: claim.OperationID, Token: claim.Token, Class: c.class}
		if c.class == recon.ClassSucceeded {
			f.EffectID = "re_1"
		}
		if _, err := l.Finish(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	return want
}

func TestWithoutATokenTheStatusOfOperationsIsToldToNobody(t *testing.T) {
	t.Parallel()
	d := start(t, parse(t, oneSource, map[string]string{"KEY": "sk_live_x", "STRIPE_URL": "http://127.0.0.1:1"}), pgtest.URL(t))
	d.await("/readyz", http.StatusOK, "ready")
	for _, token := range []string{"", "Bearer ", "Bearer x"} {
		if status, body := d.asked("/v1/operations/any", token); status != 404 || !strings.Contains(body, "listen.token_file") {
			t.Errorf("%q: %d %s", token, status, body)
		}
	}
}
