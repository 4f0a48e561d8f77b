package stripe

import (
	"sync"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// memory is what a source learned while it asked. A sweep and a person's question may ask
// at the same time.
type memory struct {
	sources.Memory
	mu       sync.Mutex                 // guards all below
	noSearch map[sources.List]time.Time // until when search is not tried where it was refused
	noExpand map[sources.List]bool      // where the key may not read what would be expanded
	opens    map[*place]identity
	answered address // the last list that was answered
}

// address is a list of one kind at one place.
type address struct {
	place *place
	kind  string
}

func newMemory(first address) *memory {
	return &memory{
		noSearch: map[sources.List]time.Time{}, noExpand: map[sources.List]bool{},
		opens: map[*place]identity{}, answered: first,
	}
}

// maySearch reports whether search was not refused lately: some accounts have none.
func (m *memory) maySearch(l sources.List, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !now.Before(m.noSearch[l])
}

func (m *memory) searchRefused(l sources.List, until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.noSearch[l] = until
}

// mayExpand reports whether the key was not refused what a group's objects name.
func (m *memory) mayExpand(l sources.List) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.noExpand[l]
}

func (m *memory) expansionRefused(l sources.List) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.noExpand[l] = true
}

// identityOf says which account a place's key was seen to open.
func (m *memory) identityOf(p *place) identity {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.opens[p]
}

func (m *memory) identified(p *place, as identity) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opens[p] = as
}

// lastAnswered is the list that was answered last.
func (m *memory) lastAnswered() address {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.answered
}

func (m *memory) wasAnswered(a address) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answered = a
}
