package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	headerTimeout = 5 * time.Second
	answerTimeout = 30 * time.Second
	idleTimeout   = 2 * time.Minute
	// readyWithin is how long readiness waits for the database.
	readyWithin = 2 * time.Second
)

// listen starts the private listener: metrics and health without a token, the status of
// operations with one, and nothing that changes anything.
func (d *daemon) listen(ctx context.Context, life *lifecycle) error {
	address := d.Config.Listen.Private
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen on %s for metrics and health: %w; change listen.private or stop what uses the address", address, err)
	}
	server := &http.Server{
		Handler: d.private(), ReadHeaderTimeout: headerTimeout, ReadTimeout: answerTimeout,
		WriteTimeout: answerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: 16 << 10,
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			d.Log.Error("the private listener ended", "error", err.Error())
		}
	}()
	life.started("private listener", func(ctx context.Context) error {
		err := server.Shutdown(ctx)
		if err != nil {
			err = errors.Join(err, server.Close())
		}
		<-done
		return err
	})
	d.Log.Info("listening", "address", listener.Addr().String(), "for", "metrics and health")
	if d.Ready != nil {
		d.Ready(listener.Addr().String())
	}
	return nil
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
