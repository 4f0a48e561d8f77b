package stripetest

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	// postTimeout is how long, in real time, an endpoint may take to answer.
	postTimeout = 10 * time.Second
	// stranger is the secret of whoever forges.
	stranger = "whsec_of_a_stranger"
)

// backoff is how long after its first try an event is posted again when it was not
// taken: in live mode up to three days, in test mode three times in all.
var backoff = map[string][]time.Duration{
	"live": {5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 22 * time.Hour,
		34 * time.Hour, 46 * time.Hour, 58 * time.Hour, 70 * time.Hour},
	"test": {time.Hour, 3 * time.Hour},
}

// Delivery is one post of one event, as it went.
type Delivery struct {
	At      time.Time // simulated; the signature bears it
	Event   string    // evt_…
	Type    string
	URL     string
	Attempt int  // 1 for the first post; retries and repeats count on
	Status  int  // as the endpoint answered; 0: not at all
	Early   bool // before the request was answered that made the event
	Repeat  bool // though it had been taken
	Forged  bool // by a stranger
}

// Taken reports whether the endpoint answered 2xx.
func (d Delivery) Taken() bool { return d.Status >= 200 && d.Status < 300 }

// parcel is an event on its way to an endpoint.
type parcel struct {
	hook   *Hook
	event  *Event
	body   []byte
	first  time.Time // when it was first due
	due    time.Time
	seq    int
	tries  int
	early  string // id of the request before whose answer it is posted
	repeat bool
	forged bool
}

// mailbag holds parcels in order of time.
type mailbag []*parcel

func (m mailbag) Len() int      { return len(m) }
func (m mailbag) Swap(i, j int) { m[i], m[j] = m[j], m[i] }
func (m mailbag) Less(i, j int) bool {
	return cmp.Or(m[i].due.Compare(m[j].due), cmp.Compare(m[i].seq, m[j].seq)) < 0
}
func (m *mailbag) Push(x any) { *m = append(*m, x.(*parcel)) }
func (m *mailbag) Pop() any {
	last := (*m)[len(*m)-1]
	*m = (*m)[:len(*m)-1]
	return last
}

// dispatch sends a new event to the endpoints that want it, with what befalls it.
func (s *Server) dispatch(p *place, e *Event) {
	for _, h := range s.hooks {
		if !h.wants(p, e) {
			continue
		}
		e.owed[h.number] = true
		trouble, label := h.spec.Trouble, fmt.Sprintf("hook %d %s", h.number, e.ID)
		befalls := func(chance float64, what string) bool { return s.ids.chance(chance, what+label, 1) }
		if befalls(trouble.Lost, "lost") {
			continue
		}
		body := h.render(s, e)
		made := e.Created.Add(s.ids.share(trouble.Delay, "delay"+label))
		one := parcel{hook: h, event: e, body: body, first: made, due: made}
		if e.RequestID != "" && befalls(trouble.Early, "early") {
			one.early, one.due = e.RequestID, e.Created
			s.early[e.RequestID] = true
		}
		s.post(one)
		if befalls(trouble.Twice, "twice") {
			again := one
			again.repeat, again.early, again.due = true, "", made.Add(s.ids.share(trouble.Delay, "again"+label))
			s.post(again)
		}
		if befalls(trouble.Forged, "forged") {
			lie := one
			lie.forged, lie.early, lie.body = true, "", h.forge(s, e)
			s.post(lie)
		}
	}
}

func (s *Server) post(p parcel) {
	s.seq++
	p.seq = s.seq
	heap.Push(&s.mail, &p)
}

// Resend posts an event again to the endpoints that want it, whatever became of it
// before, as people do in the dashboard. The next Post carries it.
func (s *Server) Resend(eventID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opt.Now()
	s.advance(now)
	for _, p := range s.inOrder {
		e, _ := p.object(eventKind, eventID).(*Event)
		if e == nil {
			continue
		}
		for _, h := range s.hooks {
			if h.wants(p, e) {
				s.post(parcel{hook: h, event: e, body: h.render(s, e), first: now, due: now, repeat: true})
			}
		}
		return nil
	}
	return fmt.Errorf("stripetest: resend: there is no event %s", eventID)
}

// NextPost is when, on the simulated clock, something is to be posted, false if nothing
// waits. Events of what is still to happen are not counted.
func (s *Server) NextPost() (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mail) == 0 {
		return time.Time{}, false
	}
	return s.mail[0].due, true
}

// Post posts all that is due by the simulated clock, one after the other over real
// HTTP, and returns how many were posted. What is not taken is due again later. It ends
// early, with an error, when ctx ends or the server closes.
func (s *Server) Post(ctx context.Context) (int, error) {
	if !s.begin() {
		return 0, errors.New("stripetest: post: the server is closed")
	}
	defer s.running.Done()
	return s.carry(ctx, s.due())
}

// postEarly posts what is to come before the answer of a request.
func (s *Server) postEarly(ctx context.Context, requestID string) {
	// The requester may go away meanwhile; the events go out all the same.
	_, _ = s.carry(context.WithoutCancel(ctx), s.dueBefore(requestID))
}

// dueBefore takes out of the mail what is to be posted before the answer of a request.
func (s *Server) dueBefore(requestID string) []*parcel {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.early[requestID] {
		return nil
	}
	delete(s.early, requestID)
	var out []*parcel
	s.mail = slices.DeleteFunc(s.mail, func(p *parcel) bool {
		if p.early == requestID {
			out = append(out, p)
		}
		return p.early == requestID
	})
	heap.Init(&s.mail)
	slices.SortFunc(out, func(a, b *parcel) int { return cmp.Compare(a.seq, b.seq) })
	return out
}

// due takes out of the mail what is to be posted by now. What was meant to be early, and
// whose request has been answered, is posted like the rest.
func (s *Server) due() []*parcel {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opt.Now()
	s.advance(now)
	var out []*parcel
	shuffled := false
	for len(s.mail) > 0 && !s.mail[0].due.After(now) {
		p := heap.Pop(&s.mail).(*parcel)
		delete(s.early, p.early)
		p.early = ""
		shuffled = shuffled || p.hook.spec.Trouble.Shuffled
		out = append(out, p)
	}
	if shuffled {
		slices.SortStableFunc(out, func(a, b *parcel) int { return cmp.Compare(s.ids.lot(a), s.ids.lot(b)) })
	}
	return out
}

// carry posts parcels. What it does not come to is due again.
func (s *Server) carry(ctx context.Context, parcels []*parcel) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(s.ended, cancel)
	defer stop()
	posted := 0
	for i, p := range parcels {
		at, header, removed := s.sign(p)
		if removed {
			continue
		}
		status := s.send(ctx, p.hook.spec.URL, header, p.body)
		if status == 0 && ctx.Err() != nil {
			s.giveBack(parcels[i:])
			return posted, fmt.Errorf("stripetest: post: %w", ctx.Err())
		}
		s.delivered(p, at, status)
		posted++
	}
	return posted, nil
}

func (s *Server) giveBack(parcels []*parcel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range parcels {
		heap.Push(&s.mail, p)
	}
}

// sign makes the header of one post: every one has a time and signatures of its own.
func (s *Server) sign(p *parcel) (at time.Time, header string, removed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at = s.opt.Now()
	secrets := p.hook.spec.Secrets
	if p.forged {
		secrets = []string{stranger}
	}
	return at, Sign(at, p.body, secrets...), p.hook.removed
}

// Sign gives the value of the header Stripe-Signature for a body that is posted at a
// time, with one signature for each secret.
func Sign(at time.Time, body []byte, secrets ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "t=%d", at.Unix())
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, []byte(secret))
		fmt.Fprintf(mac, "%d.", at.Unix())
		mac.Write(body)
		b.WriteString(",v1=" + hex.EncodeToString(mac.Sum(nil)))
	}
	return b.String()
}

// newPoster is the client that posts. It follows no redirect.
func newPoster() *http.Client {
	return &http.Client{
		Transport:     http.DefaultTransport.(*http.Transport).Clone(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// send makes one post and gives the status, 0 where no answer came. A redirect is an
// answer, and none that takes the event.
func (s *Server) send(ctx context.Context, url, signature string, body []byte) int {
	ctx, cancel := context.WithTimeout(ctx, postTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("User-Agent", "Stripe/1.0 (+https://stripe.com/docs/webhooks)")
	req.Header.Set("Stripe-Signature", signature)
	resp, err := s.poster.Do(req)
	if err != nil {
		return 0
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxBody)) // so that the connection can be used again
	return resp.StatusCode
}

// delivered logs a post, and puts what was not taken back into the mail.
func (s *Server) delivered(p *parcel, at time.Time, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.tries++
	d := Delivery{At: at, Event: p.event.ID, Type: p.event.Type, URL: p.hook.spec.URL, Attempt: p.tries, Status: status,
		Early: p.early != "", Repeat: p.repeat, Forged: p.forged}
	if len(s.deliveries) < maxCalls {
		s.deliveries = append(s.deliveries, d)
	}
	if d.Taken() && !p.forged {
		delete(p.event.owed, p.hook.number)
	}
	rests := backoff[p.event.Mode]
	if d.Taken() || p.forged || p.tries > len(rests) {
		return
	}
	p.early, p.due = "", p.first.Add(rests[p.tries-1])
	if p.due.Before(at) {
		p.due = at.Add(rests[p.tries-1] - rests[max(0, p.tries-2)]) // posted late: the rests are kept
	}
	s.post(*p)
}

// Deliveries gives all posts in their order, at most the first 200,000.
func (s *Server) Deliveries() []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.deliveries)
}

// share gives a part of d, by the seed.
func (m idMaker) share(d time.Duration, label string) time.Duration {
	if d <= 0 {
		return 0
	}
	sum := m.hash("share\x00"+label, 1)
	return time.Duration(binary.BigEndian.Uint64(sum[:8]) % uint64(d))
}

// lot is a parcel's place among those that are due together and shuffled.
func (m idMaker) lot(p *parcel) uint64 {
	sum := m.hash(fmt.Sprintf("lot\x00%s %d %t %t", p.event.ID, p.hook.number, p.repeat, p.forged), p.tries)
	return binary.BigEndian.Uint64(sum[:8])
}

// render writes the body of an event as the endpoint gets it, which never changes.
func (h *Hook) render(s *Server, e *Event) []byte {
	return s.write(e, h.spec.APIVersion, h.spec.Reshape)
}

// forge writes an event as a stranger would have it believed.
func (h *Hook) forge(s *Server, e *Event) []byte {
	return s.write(e, h.spec.APIVersion, func(_ string, object map[string]any) {
		object["amount"], object["status"] = 1_000_000, "succeeded"
	})
}

func (s *Server) write(e *Event, version string, reshape func(typ string, object map[string]any)) []byte {
	shown := e.shownIn(s.fixtures, version)
	if reshape != nil {
		data, _ := shown["data"].(map[string]any)
		object, _ := data["object"].(map[string]any)
		reshape(e.Type, object)
	}
	body, err := json.MarshalIndent(shown, "", "  ")
	if err != nil {
		panic("stripetest: an event cannot be written: " + err.Error())
	}
	return body
}
