package daemon

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// arrivals are the bodies that are on their way, the longest first. Its zero value is
// ready for use.
type arrivals struct {
	mu   sync.Mutex
	list []*arrival
}

// arrival is one body on its way.
type arrival struct {
	conn      *http.ResponseController
	dismissed bool
}

// begin notes a body that is about to be read.
func (all *arrivals) begin(w http.ResponseWriter) *arrival {
	a := &arrival{conn: http.NewResponseController(w)}
	all.mu.Lock()
	defer all.mu.Unlock()
	all.list = append(all.list, a)
	return a
}

// end notes that reading it has ended, and reports whether it was dismissed. After it
// nothing touches the connection any more.
func (all *arrivals) end(a *arrival) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.list = slices.DeleteFunc(all.list, func(b *arrival) bool { return a == b })
	return a.dismissed
}

// dismiss ends the reading of the body that has been on its way for longest, and reports
// whether there was one.
func (all *arrivals) dismiss() bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	for len(all.list) > 0 {
		a := all.list[0]
		all.list = all.list[1:]
		if a.conn.SetReadDeadline(time.Unix(1, 0)) == nil {
			a.dismissed = true
			return true
		}
	}
	return false
}
