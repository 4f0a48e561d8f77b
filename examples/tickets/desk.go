// Package tickets is a small ticket desk for the worked configuration beside it. It keeps
// the rules that matter when an answer is lost: an external id that need not be unique,
// idempotency keys that are forgotten after two hours, and lists without a lag.
package tickets

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// keyLifetime is for how long the desk knows an idempotency key.
const keyLifetime = 2 * time.Hour

// Ticket is a ticket as the desk shows it.
type Ticket struct {
	ID         int       `json:"id"`
	ExternalID string    `json:"external_id"`
	Status     string    `json:"status"`
	CreatedAt  time.Time `json:"created_at"`
	Subject    string    `json:"subject"`
}

// Desk is a ticket desk. Its zero value is empty and ready; it is an http.Handler.
type Desk struct {
	mu      sync.Mutex // guards what follows
	tickets []Ticket
	keys    map[string]int // index of the ticket that a key made
	page    bool           // a page for people answers
}

// Open opens a ticket, as a sender's POST does, and gives its id. A key that is known
// gives the ticket that it made.
func (d *Desk) Open(externalID, key string, at time.Time) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i, known := d.keys[key]; known && at.Sub(d.tickets[i].CreatedAt) < keyLifetime {
		return d.tickets[i].ID
	}
	if d.keys == nil {
		d.keys = map[string]int{}
	}
	d.keys[key] = len(d.tickets)
	d.tickets = append(d.tickets, Ticket{ID: 35001 + len(d.tickets), ExternalID: externalID, Status: "new", CreatedAt: at.UTC().Truncate(time.Second), Subject: "Refund for Jane"})
	return d.tickets[len(d.tickets)-1].ID
}

// Maintain lets a page for people answer in the desk's place, or ends it.
func (d *Desk) Maintain(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.page = on
}

// ServeHTTP answers GETs of tickets.
func (d *Desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch id := r.PathValue("id"); {
	case d.page:
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html>Back soon</html>")) // the client may be gone
	case r.Header.Get("Authorization") == "":
		answer(w, http.StatusUnauthorized, map[string]any{"error": "Couldn't authenticate you"})
	case r.Method != http.MethodGet:
		answer(w, http.StatusMethodNotAllowed, map[string]any{"error": "this desk is only read here"})
	case id != "":
		d.one(w, id)
	default:
		d.list(w, r)
	}
}

// Handler routes the desk's addresses.
func (d *Desk) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/tickets", d)
	mux.Handle("/tickets/{id}", d)
	return mux
}

func (d *Desk) one(w http.ResponseWriter, id string) {
	for _, t := range d.tickets {
		if strconv.Itoa(t.ID) == id {
			answer(w, http.StatusOK, map[string]any{"ticket": t})
			return
		}
	}
	answer(w, http.StatusNotFound, map[string]any{"error": "RecordNotFound"})
}

// list shows tickets, the newest first, by an external id and within a time.
func (d *Desk) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	after, _ := time.Parse(time.RFC3339, q.Get("created_after")) // zero where there is none
	before, err := time.Parse(time.RFC3339, q.Get("created_before"))
	if err != nil {
		before = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	found := []Ticket{}
	for _, t := range slices.Backward(d.tickets) {
		if (q.Get("external_id") == "" || q.Get("external_id") == t.ExternalID) && !t.CreatedAt.Before(after) && !t.CreatedAt.After(before) {
			found = append(found, t)
		}
	}
	size, err := strconv.Atoi(q.Get("per_page"))
	if err != nil || size < 1 || size > 100 {
		size = 100
	}
	from, _ := strconv.Atoi(q.Get("cursor")) // 0 where there is none: the beginning
	from = max(0, min(from, len(found)))
	to := min(from+size, len(found))
	meta := map[string]any{"has_more": to < len(found), "next": nil}
	if to < len(found) {
		meta["next"] = strconv.Itoa(to)
	}
	answer(w, http.StatusOK, map[string]any{"tickets": found[from:to], "meta": meta})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may be gone
}
