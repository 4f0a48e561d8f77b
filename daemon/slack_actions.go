package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	"golang.org/x/time/rate"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/escalation/slack"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
)

const (
	// clickWithin is how long Slack is let wait; it gives up after three seconds and tells
	// the person that the app does not answer.
	clickWithin = 2500 * time.Millisecond
	// clickWork bounds what one click may take, a look at a provider among it.
	clickWork = time.Minute
	// maxClicks bounds the clicks that are worked on at once.
	maxClicks = 32
	// showAfter is how long a form's later answer waits for the first one to be shown.
	showAfter = time.Second
	// clicksPerSecond is what is taken on average and at once; people do not click faster.
	clicksPerSecond = 50
)

// Results of clicks besides the outcomes of people's actions, as slack_actions_total
// counts them.
const (
	clickForm     = "form"          // a form was opened, or was to be filled in better
	clickStranger = "stranger"      // of somebody who is not on the list of people
	clickOther    = "other"         // nothing of ours
	clickUnsigned = "bad_signature" // 401
	clickNotDone  = "not_done"      // 503: the ledger or Slack did not answer
)

var clickResults = []string{
	string(ledger.PersonDone), string(ledger.PersonProposed), string(ledger.ChangedMeanwhile), string(ledger.PersonRefused),
	clickForm, clickStranger, clickOther, clickUnsigned, clickNotDone, deliveryUnreadable, deliveryTooLarge, deliveryLimited,
}

// clicks answers what people do in Slack: it verifies, does it or asks for a reason, and
// says what became of it to that person alone. The message itself is edited by way of the
// outbox, like after any other change.
type clicks struct {
	apps    []*slack.Notifier // those that a click can come from
	desk    func() *clickDesk // nil until the database has answered
	observe func(result string)
	log     *slog.Logger
	limit   *rate.Limiter
	bodies  chan struct{} // one for each body that is read
	places  chan struct{} // one for each click that is worked on
}

var tooManyClicks = &refused{http.StatusTooManyRequests, deliveryLimited, "too many clicks at once: try again in a moment"}

func (d *daemon) clicks() *clicks {
	// The configuration not by way of d: a new one may come in the middle of a click.
	h := answerClicks(d.Config, d.ledger.Load, d.notifiers, d.Log)
	h.observe, h.places = d.metrics.clicked, d.clickPlaces
	return h
}

func answerClicks(c *config.Config, open func() *ledger.Ledger, notifiers map[string]escalation.Notifier, log *slog.Logger) *clicks {
	return &clicks{
		apps: apps(c, notifiers), observe: func(string) {}, log: log,
		limit:  rate.NewLimiter(clicksPerSecond, clicksPerSecond),
		places: make(chan struct{}, maxClicks), bodies: make(chan struct{}, maxClicks),
		desk: func() *clickDesk {
			l := open()
			if l == nil {
				return nil
			}
			return &clickDesk{config: c, ledger: l, log: log}
		},
	}
}

// Clicks answers what people do in Slack, as [Run] does at POST /slack/actions, for a world
// that lives by a simulated clock and in which months of clicks come within seconds: how
// many may come is not limited.
func Clicks(c *config.Config, l *ledger.Ledger, log *slog.Logger) (http.Handler, error) {
	n, err := notifiers(c)
	if err != nil {
		return nil, err
	}
	h := answerClicks(c, func() *ledger.Ledger { return l }, n, log)
	h.limit = rate.NewLimiter(rate.Inf, 0)
	return h, nil
}

// apps are the clients that a click can come from, in the order of the configuration.
func apps(c *config.Config, notifiers map[string]escalation.Notifier) []*slack.Notifier {
	var all []*slack.Notifier
	for _, dest := range c.Destinations {
		if app, ok := notifiers[dest.Name].(*slack.Notifier); ok && app.Interactive() {
			all = append(all, app)
		}
	}
	return all
}

// drainClicks waits for what is being worked on, and lets nothing more begin.
func (d *daemon) drainClicks(ctx context.Context) error {
	for range cap(d.clickPlaces) {
		select {
		case d.clickPlaces <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// notifiers opens the clients of the configured destinations. They send nothing yet.
func notifiers(c *config.Config) (map[string]escalation.Notifier, error) {
	all := map[string]escalation.Notifier{}
	for _, dest := range c.Destinations {
		n, err := dest.Open(c.Zone)
		if err != nil {
			return nil, fmt.Errorf("open destination %s: %w", dest.Name, err)
		}
		all[dest.Name] = n
	}
	return all, nil
}

// ServeHTTP answers within three seconds. What takes longer goes on, and the person is
// told then.
func (h *clicks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if len(h.apps) == 0 {
		answer(w, http.StatusNotFound, "no destination takes clicks: set signing_secret_file in the settings of one of kind slack")
		return
	}
	app, action, err := h.read(w, r)
	if err == nil && action.Sort == slack.Other {
		h.observe(clickOther)
		w.WriteHeader(http.StatusOK)
		return
	}
	var done outcome
	if err == nil {
		done, err = h.work(r.Context(), app, action)
	}
	var no *refused
	if errors.As(err, &no) {
		h.observe(no.result)
		h.log.Debug("a click was refused", "result", no.result, "reason", no.text)
		if no.status == http.StatusTooManyRequests || no.status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", strconv.Itoa(retrySeconds))
		}
		answer(w, no.status, no.text)
		return
	}
	h.answer(w, action, done)
}

// read takes the body and finds out whose app signed it.
func (h *clicks) read(w http.ResponseWriter, r *http.Request) (*slack.Notifier, slack.Action, error) {
	select {
	case h.bodies <- struct{}{}:
		defer func() { <-h.bodies }()
	default:
		return nil, slack.Action{}, tooManyClicks
	}
	body, err := readDelivery(w, r)
	if err != nil {
		return nil, slack.Action{}, err
	}
	at := time.Now()
	signed := slices.DeleteFunc(slices.Clone(h.apps), func(n *slack.Notifier) bool { return !n.Verify(r.Header, body, at) })
	if len(signed) == 0 {
		return nil, slack.Action{}, &refused{http.StatusUnauthorized, clickUnsigned,
			"this is not signed by Slack within the last five minutes: compare signing_secret_file with the app's signing secret, and this machine's clock"}
	}
	// After the signature: what anybody can forge must not spend what people may click.
	if !h.limit.Allow() {
		return nil, slack.Action{}, tooManyClicks
	}
	action, err := slack.ParseAction(body)
	if err != nil {
		return nil, action, &refused{http.StatusBadRequest, deliveryUnreadable, err.Error()}
	}
	app := signed[0] // one app may tell in several channels
	if i := slices.IndexFunc(signed, func(n *slack.Notifier) bool { return n.In(action.Channel) }); i > 0 {
		app = signed[i]
	}
	return app, action, nil
}

// outcome is what became of a click.
type outcome struct {
	result string            // as it is counted
	said   string            // to the person alone; empty: nothing
	faults map[string]string // what to fill in better, by field of the form
	failed string            // for Slack, which then tells the person that it did not work
}

// work does what a click means. Slack is answered when that is done, or is taking long.
func (h *clicks) work(ctx context.Context, app *slack.Notifier, a slack.Action) (outcome, error) {
	desk := h.desk()
	if desk == nil {
		return outcome{}, &refused{http.StatusServiceUnavailable, clickNotDone, "starting: the ledger does not answer yet; try again in a moment"}
	}
	select {
	case h.places <- struct{}{}:
	default:
		return outcome{}, tooManyClicks
	}
	done, late := make(chan outcome), make(chan struct{})
	go func() {
		defer func() { <-h.places }()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clickWork) // Slack hangs up, and it goes on
		defer cancel()
		o := desk.do(ctx, app, a)
		h.observe(o.result)
		select {
		case done <- o:
			h.tell(ctx, app, a, o, false)
		case <-late:
			h.tell(ctx, app, a, o, true)
		}
	}()
	timer := time.NewTimer(clickWithin)
	defer timer.Stop()
	select {
	case o := <-done:
		return o, nil
	case <-timer.C:
		close(late)
		return outcome{said: "This takes a while: the provider is asked. What becomes of it is shown here."}, nil
	}
}

// tell tells the person what became of it, where the answer to Slack does not show it: a
// click's always, a form's when it came too late for it.
func (h *clicks) tell(ctx context.Context, app *slack.Notifier, a slack.Action, o outcome, late bool) {
	said := o.said
	for _, fault := range o.faults {
		said = fault
	}
	if said == "" || a.Sort == slack.Submission && !late {
		return
	}
	var err error
	if a.Sort == slack.Submission {
		select {
		case <-time.After(showAfter):
		case <-ctx.Done():
		}
		if err = app.Show(ctx, a.View, said); err == nil {
			return
		}
	}
	if a.Answer != "" {
		err = app.Tell(ctx, a.Answer, said)
	}
	if err != nil {
		h.log.Warn("somebody who clicked could not be told what became of it; the finding tells it", "finding", a.Finding, "error", err.Error())
	}
}

// answer answers Slack: an empty answer leaves the message as it is, and closes a form.
func (h *clicks) answer(w http.ResponseWriter, a slack.Action, o outcome) {
	switch {
	case o.failed != "":
		answer(w, http.StatusServiceUnavailable, o.failed)
	case a.Sort != slack.Submission || o.said == "" && len(o.faults) == 0:
		w.WriteHeader(http.StatusOK)
	case len(o.faults) > 0:
		h.json(w, map[string]any{"response_action": "errors", "errors": o.faults})
	default:
		h.json(w, map[string]any{"response_action": "update", "view": slack.Shown(o.said)})
	}
}

func (h *clicks) json(w http.ResponseWriter, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		answer(w, http.StatusInternalServerError, "the answer cannot be written") // unreachable: texts
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(b) // whoever asked is gone, and there is nobody else to tell
}
