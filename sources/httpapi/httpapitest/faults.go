package httpapitest

import (
	"net/http"
	"strconv"
	"sync"
)

// Fault is what goes wrong on the way to a fake.
type Fault string

// The faults that the fakes know.
const (
	TooMany   Fault = "429 too many requests"
	Broken    Fault = "500 internal error"
	Proxy     Fault = "502 page of a proxy"
	Hangs     Fault = "no answer in time"
	Cut       Fault = "a reply cut in the middle"
	NotJSON   Fault = "200 that is not JSON"
	Empty     Fault = "200 with an empty object"
	Closes    Fault = "connection closed without a reply"
	NoKey     Fault = "401 unknown credentials"
	Forbidden Fault = "403 not permitted"
	Redirects Fault = "302 to a page for people"
	NoBody    Fault = "200 without a body"
	HTML404   Fault = "404 page of a proxy"
	HTML200   Fault = "200 page of a proxy"
)

// Faults lists them all.
var Faults = []Fault{
	TooMany, Broken, Proxy, Hangs, Cut, NotJSON, Empty, Closes, NoKey, Forbidden, Redirects, NoBody, HTML404, HTML200,
}

// way is what lies between a client and a fake. The zero value lets everything pass.
type way struct {
	mu     sync.Mutex // guards what follows
	fault  Fault
	good   int
	onHang func(*http.Request)
	mended chan struct{} // closed by Mend
}

// OnHang is called when a request is let hang, before anybody waits.
func (y *way) OnHang(f func(*http.Request)) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.onHang = f
}

// Break lets every request suffer a fault after some good ones.
func (y *way) Break(f Fault, good int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.fault, y.good = f, good
	if y.mended == nil {
		y.mended = make(chan struct{})
	}
}

// Mend ends it.
func (y *way) Mend() {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.fault = ""
	if y.mended != nil {
		close(y.mended)
		y.mended = nil
	}
}

// befall takes the fault of one request; empty: it passes.
func (y *way) befall() (f Fault, hang func(*http.Request), mended <-chan struct{}) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.fault != "" && y.good > 0 {
		y.good--
		return "", nil, nil
	}
	return y.fault, y.onHang, y.mended
}

// reply is an answer in JSON.
type reply struct {
	status int
	header map[string]string
	body   []byte
}

// pass answers a request, unless something befalls it. What was asked for is done all the
// same.
func (y *way) pass(w http.ResponseWriter, r *http.Request, a reply) {
	fault, hang, mended := y.befall()
	switch fault {
	case "":
		for name, value := range a.header {
			w.Header().Set(name, value)
		}
		write(w, a.status, "application/json", a.body)
	case Hangs:
		if hang != nil {
			hang(r)
		}
		select {
		case <-r.Context().Done():
		case <-mended:
		}
	default:
		suffer(w, fault, a.body)
	}
}

func write(w http.ResponseWriter, status int, kind string, body []byte) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone
}

func suffer(w http.ResponseWriter, f Fault, body []byte) {
	html := []byte("<html><body>Something else answers here</body></html>")
	switch f {
	case TooMany:
		w.Header().Set("Retry-After", "1")
		write(w, 429, "application/json", []byte(`{"error":"slow down"}`))
	case Broken:
		write(w, 500, "application/json", []byte(`{"error":"internal"}`))
	case Proxy:
		write(w, 502, "text/html", html)
	case NotJSON, HTML200:
		write(w, 200, "text/html", html)
	case HTML404:
		write(w, 404, "text/html", html)
	case Empty:
		write(w, 200, "application/json", []byte(`{}`))
	case NoBody:
		write(w, 200, "application/json", nil)
	case NoKey:
		write(w, 401, "application/json", []byte(`{"error":"unknown token"}`))
	case Forbidden:
		write(w, 403, "application/json", []byte(`{"error":"not yours"}`))
	case Redirects:
		w.Header().Set("Location", "/login")
		write(w, 302, "text/html", html)
	case Cut:
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		write(w, 200, "application/json", body[:len(body)/2])
		panic(http.ErrAbortHandler)
	default:
		panic(http.ErrAbortHandler)
	}
}
