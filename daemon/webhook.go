package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/time/rate"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/inbox"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

const (
	// maxDelivery bounds one body. The largest events of providers are a quarter of it.
	maxDelivery = 1 << 20
	// maxDeliveries bounds the bodies that are held at once.
	maxDeliveries = 256
	// deliveriesPerSecond is what the provider of one source may deliver, on average and at
	// once. Above it the provider is told to send again, which it does.
	deliveriesPerSecond = 10_000
	// storeWithin bounds the storing of one delivery. Providers wait ten seconds and more.
	storeWithin = 8 * time.Second
	// placeWithin is how long a delivery waits for the place that a slow one gives up.
	placeWithin = time.Second
)

// Results of deliveries, as inbox_events_total counts them.
const (
	deliveryStored      = "stored"
	deliveryRepeated    = "repeated"
	deliveryForeign     = "foreign"      // of an account or mode that is none of the source's: stored, never matched
	deliveryTooLarge    = "too_large"    // 413
	deliveryLimited     = "limited"      // 429
	deliveryUnavailable = "not_stored"   // 503
	deliveryUnreadable  = "not_readable" // 400, as a source says it or because it cannot be stored
)

var deliveryResults = []string{
	deliveryStored, deliveryRepeated, deliveryForeign, string(sources.BadSignature), string(sources.TooOld), deliveryUnreadable,
	deliveryTooLarge, deliveryLimited, deliveryUnavailable,
}

// receiver is a configured source that takes deliveries.
type receiver struct {
	sources.Receiver
	name  recon.SourceName
	sheet recon.Sheet
	limit *rate.Limiter
}

// Name is the source's.
func (to *receiver) Name() recon.SourceName { return to.name }

// Sheet is the source's.
func (to *receiver) Sheet() recon.Sheet { return to.sheet }

// receivers opens the sources whose providers deliver events.
func receivers(c *config.Config) (map[string]*receiver, error) {
	all := map[string]*receiver{}
	for _, s := range c.Sources {
		if !s.Sheet.Webhooks {
			continue
		}
		client, err := s.Open(nil)
		if err != nil {
			return nil, fmt.Errorf("open source %s: %w", s.Name, err)
		}
		if r, ok := client.(sources.Receiver); ok {
			all[string(s.Name)] = &receiver{
				Receiver: r, name: s.Name, sheet: s.Sheet, limit: rate.NewLimiter(deliveriesPerSecond, deliveriesPerSecond),
			}
		}
	}
	return all, nil
}

// webhooks answers deliveries: it verifies, stores and answers, and nothing else.
type webhooks struct {
	known     func(source string) bool
	receivers map[string]*receiver
	// inbox gives nil until the database has answered.
	inbox   func() *inbox.Writer
	stored  func() // an event came that is to be taken in
	observe func(source recon.SourceName, result string)
	written func(recon.Event) // an event was stored that was not there
	log     *slog.Logger
	places  chan struct{} // one for each body that is held
	coming  arrivals      // of these, the ones that are still on their way
	warn    rate.Sometimes
}

func (d *daemon) webhooks() *webhooks {
	c := d.Config // not by way of d: a new one may come in the middle of a request
	return &webhooks{
		known:     func(name string) bool { _, ok := c.Source(recon.SourceName(name)); return ok },
		receivers: d.receivers, inbox: d.writer.Load, stored: d.bell.ring, observe: d.metrics.delivered, written: d.metrics.written, log: d.Log,
		places: make(chan struct{}, maxDeliveries), warn: rate.Sometimes{Interval: time.Minute},
	}
}

// refused is an answer other than 200.
type refused struct {
	status int
	result string // as it is counted
	text   string // for the provider's log: no secret, nothing of the body
}

func (r *refused) Error() string { return r.text }

// ServeHTTP answers 200 only for what is on disk.
func (h *webhooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("source")
	to := h.receivers[name]
	if to == nil {
		answer(w, http.StatusNotFound, h.absent(name))
		return
	}
	result, err := h.take(r.Context(), to, w, r)
	var no *refused
	if errors.As(err, &no) {
		h.observe(to.name, no.result)
		h.log.Debug("a delivery was refused", "source", string(to.name), "result", no.result, "reason", no.text)
		if no.status == http.StatusTooManyRequests || no.status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", strconv.Itoa(retrySeconds))
		}
		answer(w, no.status, no.text)
		return
	}
	h.observe(to.name, result)
	if result == deliveryStored {
		h.stored()
	}
	answer(w, http.StatusOK, result)
}

const retrySeconds = 5

// absent says why nothing is taken under a name. It does not repeat the name, which
// anybody may have written.
func (h *webhooks) absent(name string) string {
	if h.known(name) {
		return "this source takes no deliveries: set webhook.secret_files in its settings, if its kind has events"
	}
	return "there is no such source in the configuration"
}

// take does all of a delivery and says how it is counted.
func (h *webhooks) take(ctx context.Context, to *receiver, w http.ResponseWriter, r *http.Request) (string, error) {
	if !h.place(ctx) {
		return "", &refused{http.StatusTooManyRequests, deliveryLimited, "too many deliveries at once: send it again later"}
	}
	defer func() { <-h.places }()
	body, err := h.read(w, r)
	if err != nil {
		return "", err
	}
	at := time.Now()
	event, err := to.verified(r.Header, body, at)
	if err != nil {
		return "", err
	}
	// After the signature: what anybody can forge must not spend what the provider may send.
	if !to.limit.Allow() {
		return "", &refused{http.StatusTooManyRequests, deliveryLimited, "too many deliveries: send it again later"}
	}
	return h.store(ctx, inbox.Delivery{Event: event, At: at, Foreign: !to.sheet.Has(event.Account, event.Mode)})
}

// place takes a place for a body. Where all are taken, the body that has been on its way
// for longest gives up its own: who sends slowly holds up nobody.
func (h *webhooks) place(ctx context.Context) bool {
	select {
	case h.places <- struct{}{}:
		return true
	default:
	}
	if !h.coming.dismiss() {
		return false
	}
	select {
	case h.places <- struct{}{}:
		return true
	case <-time.After(placeWithin):
	case <-ctx.Done():
	}
	return false
}

// read reads a body that may have to give up its place meanwhile.
func (h *webhooks) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	a := h.coming.begin(w)
	body, err := readDelivery(w, r)
	if h.coming.end(a) && err != nil {
		return nil, &refused{http.StatusTooManyRequests, deliveryLimited, "too many deliveries at once, and this one came slowly: send it again later"}
	}
	return body, err
}

// readDelivery reads a body no further than it may be long.
func readDelivery(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	large := &refused{http.StatusRequestEntityTooLarge, deliveryTooLarge, fmt.Sprintf("a delivery is at most %d bytes", maxDelivery)}
	if r.ContentLength > maxDelivery {
		return nil, large
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxDelivery))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, large
	case err != nil:
		return nil, &refused{http.StatusBadRequest, deliveryUnreadable, "the body broke off"}
	}
	return body, nil
}

// verified asks the source whether its provider sent this.
func (to *receiver) verified(header http.Header, body []byte, at time.Time) (recon.Event, error) {
	event, err := to.Verify(header, body, at)
	if err == nil {
		if err = inbox.Check(event); err != nil {
			err = &sources.Refusal{Why: sources.NotReadable, Err: err}
		}
	}
	var refusal *sources.Refusal
	switch {
	case err == nil:
		event.Body = body
		return event, nil
	case errors.As(err, &refusal):
		return event, &refused{http.StatusBadRequest, string(refusal.Why), refusal.Error()}
	}
	return event, &refused{http.StatusBadRequest, deliveryUnreadable, "the delivery cannot be read"}
}

// store commits the event. What is not on disk is not acknowledged, so that the
// provider sends it again.
func (h *webhooks) store(ctx context.Context, d inbox.Delivery) (string, error) {
	away := &refused{http.StatusServiceUnavailable, deliveryUnavailable, "it cannot be stored now: send it again"}
	box := h.inbox()
	if box == nil {
		return "", away
	}
	ctx, cancel := context.WithTimeout(ctx, storeWithin)
	defer cancel()
	receipt, err := box.Receive(ctx, d)
	switch {
	case err != nil:
		h.warn.Do(func() {
			h.log.Warn("deliveries cannot be stored; their providers are told to send them again", "source", string(d.Event.Source), "error", err.Error())
		})
		return "", away
	case receipt == inbox.Repeated:
		return deliveryRepeated, nil
	}
	h.written(d.Event)
	if d.Foreign {
		return deliveryForeign, nil
	}
	return deliveryStored, nil
}
