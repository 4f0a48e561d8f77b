package daemon

import (
	"context"
	"log/slog"
	"time"
)

const (
	// stopWithin bounds the end of all parts together. Orchestrators kill after ten seconds.
	stopWithin = 7 * time.Second
	// leastStop is what a part gets also where those before it took all of the time.
	leastStop = 100 * time.Millisecond
)

// lifecycle stops what was started, in reverse order and by name.
type lifecycle struct {
	log   *slog.Logger
	parts []part
}

type part struct {
	name string
	stop func(context.Context) error
}

// started notes a running part and how it ends.
func (l *lifecycle) started(name string, stop func(context.Context) error) {
	l.parts = append(l.parts, part{name, stop})
}

// stop ends all parts, until the deadline of ctx. One that fails or takes too long keeps no
// other from its end.
func (l *lifecycle) stop(ctx context.Context) {
	for i := len(l.parts) - 1; i >= 0; i-- {
		p := l.parts[i]
		began := time.Now()
		err := p.end(context.WithoutCancel(ctx), timeLeft(ctx))
		attrs := []any{"part", p.name, "took", time.Since(began).Round(time.Millisecond).String()}
		if err != nil {
			l.log.Error("a part did not stop well", append(attrs, "error", err.Error())...)
			continue
		}
		l.log.Info("stopped", attrs...)
	}
	l.parts = nil
}

// end stops the part, and leaves it behind once its time is over: what a part waits for may
// know of no bound, such as a connection whose statement waits for a lock.
func (p part) end(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- p.stop(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// timeLeft is what is left until the deadline of ctx.
func timeLeft(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return stopWithin
	}
	return max(time.Until(end), leastStop)
}

// service runs f in a goroutine of its own until the returned function is called,
// which waits for it.
func service(ctx context.Context, f func(context.Context)) (stop func(context.Context) error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(ctx)
	}()
	return func(bounded context.Context) error {
		cancel()
		select {
		case <-done:
			return nil
		case <-bounded.Done():
			return bounded.Err()
		}
	}
}
