package stripe

import (
	"sync"
	"time"
)

// memory is what a source learned while it asked. A sweep and a person's question may ask
// at the same time.
type memory struct {
	mu         sync.Mutex            // guards all below
	quietUntil time.Time             // by the clock given to Ask: a 429 asked for silence
	density    map[groupID]float64   // objects a second, as last seen
	noSearch   map[groupID]time.Time // until when search is not tried where it was refused
	noExpand   map[groupID]bool      // where the key may not read what would be expanded
	opens      map[*place]identity
	answered   address // the last list that was answered
}

// address is a list of one kind at one place.
type address struct {
	place *place
	kind  string
}

func newMemory(first address) *memory {
	return &memory{
		density: map[groupID]float64{}, noSearch: map[groupID]time.Time{}, noExpand: map[groupID]bool{},
		opens: map[*place]identity{}, answered: first,
	}
}

// quiet gives the time until which Stripe asked for silence.
func (m *memory) quiet() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.quietUntil
}

func (m *memory) keepQuiet(until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.quietUntil = until
}

// densityOf gives how densely the objects of a group lay, negative when it is not known.
func (m *memory) densityOf(g groupID) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d, known := m.density[g]; known {
		return d
	}
	return -1
}

func (m *memory) sawDensity(g groupID, perSecond float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.density[g] = perSecond
}

// maySearch reports whether search was not refused lately: some accounts have none.
func (m *memory) maySearch(g groupID, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !now.Before(m.noSearch[g])
}

func (m *memory) searchRefused(g groupID, until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.noSearch[g] = until
}

// mayExpand reports whether the key was not refused what a group's objects name.
func (m *memory) mayExpand(g groupID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.noExpand[g]
}

func (m *memory) expansionRefused(g groupID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.noExpand[g] = true
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
