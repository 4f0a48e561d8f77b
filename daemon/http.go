package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// readyWithin is how long readiness waits for the database.
const readyWithin = 2 * time.Second

// limits bound what one connection may take of us, whoever is at its other end.
type limits struct {
	header      time.Duration // until the request's header is there
	request     time.Duration // until its body is there, and then until the answer is taken
	idle        time.Duration // between two requests
	headerBytes int
}

var listenerLimits = limits{header: 5 * time.Second, request: 30 * time.Second, idle: 2 * time.Minute, headerBytes: 16 << 10}

// server makes a server that keeps the limits. What net/http says of broken connections is
// the doing of strangers, and is told where everything is.
func (l limits) server(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: upright(h, log), ReadHeaderTimeout: l.header, ReadTimeout: l.request, WriteTimeout: l.request, IdleTimeout: l.idle,
		MaxHeaderBytes: l.headerBytes, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// upright answers 500 where a handler panics, and logs where it did. The value is not
// logged, as it may hold anything that was at hand.
func upright(h http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch v := recover(); v {
			case nil:
			case http.ErrAbortHandler:
				panic(v)
			default:
				log.Error("a request made the program panic; please report it", "path", r.Pattern, "panic", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
				answer(w, http.StatusInternalServerError, "this is a fault of the program; its log says where")
			}
		}()
		h.ServeHTTP(w, r)
	})
}

// listen starts both listeners: the private one with metrics and health without a token
// and the status of operations with one, and the public one where providers and Slack deliver to,
// if anything is served there. Only what Slack signed, by somebody on the list of people,
// changes an operation.
func (d *daemon) listen(ctx context.Context, life *lifecycle) error {
	d.open()
	if d.front.Load() != nil {
		address, err := d.serve(ctx, life, listener{"public", d.Config.Listen.Public, "what providers and Slack deliver", http.HandlerFunc(d.fronted)})
		if err != nil {
			return err
		}
		if d.ReadyPublic != nil {
			d.ReadyPublic(address)
		}
	}
	address, err := d.serve(ctx, life, listener{"private", d.Config.Listen.Private, "metrics and health", d.private()})
	if err != nil {
		return err
	}
	if d.Ready != nil {
		d.Ready(address)
	}
	return nil
}

// listener is one address and what answers there.
type listener struct {
	name    string // as in the configuration: listen.private
	address string
	serves  string // for people
	handler http.Handler
}

// serve starts a listener and gives the address that it got.
func (d *daemon) serve(ctx context.Context, life *lifecycle, l listener) (string, error) {
	var lc net.ListenConfig
	socket, err := lc.Listen(ctx, "tcp", l.address)
	if err != nil {
		return "", fmt.Errorf("listen on %s for %s: %w; change listen.%s or stop what uses the address", l.address, l.serves, err, l.name)
	}
	server := listenerLimits.server(l.handler, d.Log)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(socket); !errors.Is(err, http.ErrServerClosed) {
			d.Log.Error("the "+l.name+" listener ended", "error", err.Error())
		}
	}()
	life.started(l.name+" listener", func(ctx context.Context) error {
		err := server.Shutdown(ctx)
		if err != nil {
			err = errors.Join(err, server.Close())
		}
		<-done
		return err
	})
	d.Log.Info("listening", "address", socket.Addr().String(), "for", l.serves)
	return socket.Addr().String(), nil
}

// public is what others may reach; nil: nothing is served there.
func (d *daemon) public() http.Handler {
	clicks := d.clicks()
	if len(d.receivers) == 0 && len(clicks.apps) == 0 {
		return nil
	}
	mux := http.NewServeMux()
	mux.Handle("POST /webhooks/{source}", d.webhooks())
	mux.Handle("POST /slack/actions", clicks)
	return mux
}

func (d *daemon) private() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(d.metrics.registry, promhttp.HandlerOpts{}))
	// Alive says only that the process runs: an orchestrator that restarted us because
	// the database is away would help nobody.
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "alive") })
	mux.HandleFunc("GET /readyz", d.readyz)
	mux.Handle("GET /v1/operations", d.withToken(d.statusList))
	mux.Handle("GET /v1/operations/{id...}", d.withToken(d.status))
	return mux
}

func (d *daemon) readyz(w http.ResponseWriter, r *http.Request) {
	l := d.ledger.Load()
	if l == nil || !d.ready.Load() {
		answer(w, http.StatusServiceUnavailable, "starting: the database has not answered yet")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyWithin)
	defer cancel()
	if _, err := l.Now(ctx); err != nil {
		answer(w, http.StatusServiceUnavailable, "the database does not answer")
		return
	}
	answer(w, http.StatusOK, "ready")
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n")) // whoever asked is gone, and there is nobody else to tell
}
