package large_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/seed-1c4f4dc2/reconciler/internal/world/large"
)

// A request that its provider holds ends as one whose time is over, and no other one does.
func TestARequestThatIsHeldEndsAsOneWhoseTimeIsOver(t *testing.T) {
	t.Parallel()
	var giveUp func(*http.Request)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		giveUp(r)
		if r.URL.Path == "/held" {
			<-r.Context().Done()
		}
	}))
	defer server.Close()
	var way http.RoundTripper
	way, giveUp = large.Patience(func(r *http.Request) bool { return r.URL.Path == "/held" })
	for path, want := range map[string]error{"/held?a=1": context.DeadlineExceeded, "/other": nil} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := way.RoundTrip(req)
		if !errors.Is(err, want) {
			t.Errorf("%s ended with %v, want %v", path, err, want)
		}
		if err == nil {
			_ = resp.Body.Close() // it was empty
		}
	}
}
