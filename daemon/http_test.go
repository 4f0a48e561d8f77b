package daemon

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
)

// dial connects to a listener and says something, which need not be a whole request.
func dial(t *testing.T, address, says string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, says); err != nil {
		t.Fatal(err)
	}
	return conn
}

// closed waits until the other end closes, which it must do by itself within the minute
// of dial, and gives what it said.
func closed(t *testing.T, conn net.Conn) string {
	t.Helper()
	said, err := io.ReadAll(conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection is kept; it said %q", said)
	}
	return string(said)
}

// drip sends a byte now and then, as whoever wants to hold a connection for nothing.
func drip(conn net.Conn) {
	for {
		if _, err := io.WriteString(conn, "a"); err != nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestBothListenersRefuseSlowAndLargeHeaders(t *testing.T) {
	t.Parallel()
	d := start(t, hookedConfig(t, "http://127.0.0.1:1"), pgtest.URL(t))
	for name, address := range map[string]string{"public": d.public, "private": d.base} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slow := dial(t, address, "GET /healthz HTTP/1.1\r\nHost: x\r\nX: ")
			go drip(slow)
			large := dial(t, address, "GET /healthz HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("a", 64<<10)+"\r\n\r\n")
			if got := closed(t, large); !strings.HasPrefix(got, "HTTP/1.1 431 ") {
				t.Errorf("a header of 64 KiB got %q", got)
			}
			closed(t, slow)
		})
	}
	for _, address := range []string{d.base + "/v1/operations/x", d.public + "/webhooks/stripe-main", d.public + "/slack/actions"} {
		body := strings.NewReader(strings.Repeat("a", 2<<20))
		resp, err := http.Post(address, "application/json", io.MultiReader(body)) // without a length
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode < 400 || resp.StatusCode == http.StatusInternalServerError {
			t.Errorf("2 MiB to %s: %d", address, resp.StatusCode)
		}
	}
}

// What the constants promise, with shorter ones: nobody holds a connection for nothing,
// whichever part of an exchange they are slow in.
func TestASlowClientLosesItsConnection(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	short := limits{header: 150 * time.Millisecond, request: 300 * time.Millisecond, idle: 150 * time.Millisecond, headerBytes: 4 << 10}
	ended := make(chan error, 2)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /body", func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		ended <- err
	})
	mux.HandleFunc("GET /much", func(w http.ResponseWriter, _ *http.Request) {
		var err error
		for err == nil {
			_, err = w.Write(make([]byte, 1<<20))
		}
		ended <- err
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "alive") })
	mux.HandleFunc("GET /panic", func(http.ResponseWriter, *http.Request) { panic("sk_live_TESTONLY") })
	socket, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := short.server(mux, slog.New(slog.NewJSONHandler(&log, nil)))
	go func() { _ = server.Serve(socket) }()
	t.Cleanup(func() { _ = server.Close() })
	address := socket.Addr().String()

	header := dial(t, address, "GET /healthz HTTP/1.1\r\nHost: x\r\nX: ")
	go drip(header)
	closed(t, header)

	idle := dial(t, address, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
	if got := closed(t, idle); !strings.Contains(got, "alive") {
		t.Errorf("before it was idle it got %q", got)
	}

	body := dial(t, address, "POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
	go drip(body)
	if err := <-ended; err == nil {
		t.Error("a body that drips was read to its end")
	}
	closed(t, body)

	dial(t, address, "GET /much HTTP/1.1\r\nHost: x\r\n\r\n") // and never reads
	if err := <-ended; err == nil {
		t.Error("an answer that nobody takes was written to its end")
	}

	broken := dial(t, address, "GET /panic HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if got := closed(t, broken); !strings.HasPrefix(got, "HTTP/1.1 500 ") {
		t.Errorf("after a panic: %q", got)
	}
	if text := log.String(); !strings.Contains(text, `"panic":"string"`) || !strings.Contains(text, "http_test.go") || strings.Contains(text, "TESTONLY") {
		t.Errorf("the log of a panic says where it was, and not what was at hand: %s", text)
	}
}
