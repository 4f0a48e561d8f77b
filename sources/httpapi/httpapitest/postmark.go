package httpapitest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Letter is a message as the fake Postmark holds it.
type Letter struct {
	Server   string // the token of the server that sent it
	Stream   string
	To       []string
	Subject  string
	Metadata map[string]string
	Queued   bool

	id     string
	at     time.Time
	seen   time.Time
	events []map[string]any
}

// Postmark is a fake of Postmark's API for messages that were sent. It keeps what Postmark
// documents: a token for each server; count and offset are required, at most 500, and
// 10,000 together; dates are US Eastern and include both ends; newest first; the search
// shows no events; messages are forgotten after the retention.
type Postmark struct {
	*httptest.Server
	way
	now func() time.Time
	// Reach is the largest sum of count and offset; Retention is for how long messages are
	// kept. They are set before the first request.
	Reach     int
	Retention time.Duration

	mu      sync.Mutex // guards what follows
	lag     time.Duration
	letters []*Letter
	all     int
	writes  int
}

// StartPostmark runs the fake. It is closed by its caller.
func StartPostmark(now func() time.Time) *Postmark {
	p := &Postmark{now: now, Reach: 10_000, Retention: 45 * 24 * time.Hour}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	return p
}

// SetLag lets letters that are sent from now on be found only d later.
func (p *Postmark) SetLag(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lag = d
}

// Send takes a letter and gives its id.
func (p *Postmark) Send(l Letter) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.id = fmt.Sprintf("00000000-0000-4000-8000-%012d", len(p.letters)+1)
	l.at = p.now()
	l.seen = l.at.Add(p.lag)
	p.letters = append(p.letters, &l)
	return l.id
}

// Log adds an event to a letter: Delivered, Bounced, SpamComplaint, Opened.
func (p *Postmark) Log(id, kind string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.letters {
		if l.id == id {
			l.events = append(l.events, map[string]any{"Recipient": l.To[0], "Type": kind, "ReceivedAt": eastern(p.now()), "Details": map[string]any{}})
		}
	}
}

// Requests is how many requests came, and how many of them were no reads.
func (p *Postmark) Requests() (all, writes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all, p.writes
}

var newYork = func() *time.Location {
	l, err := time.LoadLocation("America/New_York")
	if err != nil {
		panic(err) // no time zones on this machine
	}
	return l
}()

func eastern(t time.Time) string { return t.In(newYork).Format("2006-01-02T15:04:05.0000000-07:00") }

func (p *Postmark) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.all++
	if r.Method != http.MethodGet {
		p.writes++
	}
	status, body := p.answer(r)
	p.mu.Unlock()
	p.pass(w, r, reply{status: status, body: encode(body)})
}

func refusal(code int, text string) map[string]any {
	return map[string]any{"ErrorCode": code, "Message": text}
}

func (p *Postmark) answer(r *http.Request) (int, map[string]any) {
	token := r.Header.Get("X-Postmark-Server-Token")
	if token == "" {
		return 401, refusal(10, "No token")
	}
	if r.Method != http.MethodGet {
		return 405, refusal(0, "Not allowed")
	}
	if r.URL.Path == "/messages/outbound" {
		return p.search(token, r.URL.Query())
	}
	id := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/messages/outbound/"), "/details")
	for _, l := range p.letters {
		if l.id == id && p.visible(l, token) {
			shown := l.show()
			shown["MessageEvents"], shown["TextBody"] = append([]map[string]any{}, l.events...), "Dear Jane,"
			return 200, shown
		}
	}
	return 422, refusal(701, "This message was not found")
}

func (p *Postmark) visible(l *Letter, token string) bool {
	now := p.now()
	return l.Server == token && !l.seen.After(now) && l.at.After(now.Add(-p.Retention))
}

func (l *Letter) show() map[string]any {
	to := []map[string]any{}
	for _, address := range l.To {
		to = append(to, map[string]any{"Email": address, "Name": nil})
	}
	metadata := map[string]string{}
	for name, value := range l.Metadata {
		metadata[name] = value
	}
	status := "Sent"
	if l.Queued {
		status = "Queued"
	}
	return map[string]any{
		"MessageID": l.id, "ReceivedAt": eastern(l.at), "Status": status, "To": to, "Recipients": l.To, "Subject": l.Subject,
		"From": "letters@example.com", "MessageStream": l.Stream, "Metadata": metadata,
	}
}

func (p *Postmark) search(token string, q url.Values) (int, map[string]any) {
	count, err1 := strconv.Atoi(q.Get("count"))
	offset, err2 := strconv.Atoi(q.Get("offset"))
	if err1 != nil || err2 != nil || count < 1 || count > 500 || offset < 0 || count+offset > p.Reach {
		return 422, refusal(600, "Invalid count or offset")
	}
	var found []*Letter
	for _, l := range slices.Backward(p.letters) {
		within, ok := between(l.at, q.Get("fromdate"), q.Get("todate"))
		if !ok {
			return 422, refusal(600, "Invalid date")
		}
		if p.visible(l, token) && within && equal(q.Get("messagestream"), l.Stream) && l.bears(q) {
			found = append(found, l)
		}
	}
	messages := []map[string]any{}
	for _, l := range found[min(offset, len(found)):min(offset+count, len(found))] {
		messages = append(messages, l.show())
	}
	return 200, map[string]any{"TotalCount": len(found), "Messages": messages}
}

// bears reports whether a letter has the metadata that is asked for.
func (l *Letter) bears(q url.Values) bool {
	for name := range q {
		if field, ok := strings.CutPrefix(name, "metadata_"); ok && l.Metadata[field] != q.Get(name) {
			return false
		}
	}
	return true
}

// between reads the bounds as times in New York, both ends included.
func between(at time.Time, from, to string) (within, ok bool) {
	within = true
	for bound, early := range map[string]bool{from: true, to: false} {
		if bound == "" {
			continue
		}
		t, err := time.ParseInLocation("2006-01-02T15:04:05", bound, newYork)
		if err != nil {
			return false, false
		}
		at := at.Truncate(time.Second)
		within = within && (early && !at.Before(t) || !early && !at.After(t))
	}
	return within, true
}
