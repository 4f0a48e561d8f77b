package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/escalation"
)

// applyWithin bounds how long a reload waits for the ledger to take the policies.
const applyWithin = 10 * time.Second

// reload reads the configuration again. One that holds takes the place of the running
// one; else the running one stays, and the log says why. It returns an error only where
// neither can go on.
func (d *daemon) reload(ctx context.Context, work *lifecycle) error {
	next, clients, err := d.readAgain(ctx)
	if err != nil {
		d.refuse(err)
		return nil
	}
	// Runs end after their step and give their places and ticks back.
	d.stopWork(ctx, work)
	d.Config, d.notifiers = next, clients
	d.metrics.show(next)
	d.open()
	err = d.retry(ctx, "go on with the new configuration", func() error {
		err := d.startWork(ctx, work)
		if err != nil {
			d.stopWork(ctx, work)
		}
		return err
	})
	if err == nil {
		d.Log.Info("the new configuration holds", "file", next.Path, "actions", len(next.Policies), "destinations", len(next.Destinations))
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (d *daemon) stopWork(ctx context.Context, work *lifecycle) {
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	work.stop(ending)
}

// readAgain reads a configuration that can take the place of the running one, opens its
// destinations and has the ledger take its policies and people.
func (d *daemon) readAgain(ctx context.Context) (*config.Config, map[string]escalation.Notifier, error) {
	next, err := d.Load()
	if err != nil {
		return nil, nil, err
	}
	fixed := d.Config.Fixed(next)
	clients, err := notifiers(next)
	if err != nil {
		return nil, nil, err
	}
	if front := d.front.Load(); (front == nil) != (len(d.receivers) == 0 && len(apps(next, clients)) == 0) {
		fixed = append(fixed, "whether anybody answers at listen.public")
	}
	if len(fixed) > 0 {
		return nil, nil, errors.New("it changes what cannot change without a restart: " + strings.Join(fixed, ", "))
	}
	ctx, cancel := context.WithTimeout(ctx, applyWithin)
	defer cancel()
	if err := d.applyPolicies(ctx, d.ledger.Load(), next); err != nil {
		return nil, nil, fmt.Errorf("%w; the file is right: send SIGHUP again once that is mended", err)
	}
	return next, clients, nil
}

// refuse says each fault in a line of its own.
func (d *daemon) refuse(err error) {
	d.Log.Error("the configuration was not reloaded; the running one stays", "reason", firstLine(err.Error()))
	var faults *config.Faults
	if !errors.As(err, &faults) {
		return
	}
	for _, f := range faults.List {
		d.Log.Error("fault of the configuration", "file", faults.File, "line", f.Line, "key", f.Path, "problem", f.Problem)
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// open lets the public listener answer by the present configuration.
func (d *daemon) open() {
	if h := d.public(); h != nil {
		d.front.Store(&h)
	}
}

// fronted answers by whatever configuration holds at the moment.
func (d *daemon) fronted(w http.ResponseWriter, r *http.Request) { (*d.front.Load()).ServeHTTP(w, r) }
