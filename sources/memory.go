package sources

import (
	"sync"
	"time"
)

// Memory is what a source knows from earlier requests and its next plan rests on. A sweep
// and a person's question may ask at the same time. The zero value knows nothing.
type Memory struct {
	mu         sync.Mutex // guards what follows
	quietUntil time.Time  // by the clock given to Ask: the provider asked for silence
	density    map[List]float64
}

// Quiet gives the time until which the provider asked for silence.
func (m *Memory) Quiet() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.quietUntil
}

// KeepQuiet remembers that the provider asked for silence.
func (m *Memory) KeepQuiet(until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.quietUntil = until
}

// DensityOf gives how many objects a second a list held, negative when it is not known.
func (m *Memory) DensityOf(l List) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d, known := m.density[l]; known {
		return d
	}
	return -1
}

// SawDensity remembers how many objects a second a list held.
func (m *Memory) SawDensity(l List, perSecond float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.density == nil {
		m.density = map[List]float64{}
	}
	m.density[l] = perSecond
}
