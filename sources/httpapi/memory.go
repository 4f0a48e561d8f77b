package httpapi

import (
	"sync"
	"time"
)

// memory is what a source knows from earlier requests.
type memory struct {
	mu         sync.Mutex // guards what follows
	quietUntil time.Time
	density    map[groupID]float64 // objects a second
}

// quiet gives the time until which the provider asked for silence.
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
	if m.density == nil {
		m.density = map[groupID]float64{}
	}
	m.density[g] = perSecond
}
