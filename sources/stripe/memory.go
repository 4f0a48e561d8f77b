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
	noExpand map[sources.List]time.Time // the same of what the key may not see expanded
	opens    map[*place]identity
	noSelf   map[*place]time.Time // until when a key is not asked again that would not tell its account
	answered address              // the last list that was answered
}

// refusalPause is how long a refusal is believed: an account may have no search, a key may
// lack a permission; but a key that is being changed is refused once too. It is less than a
// day, so that every nightly audit tries again.
const refusalPause = 20 * time.Hour

// address is a list of one kind at one place.
type address struct {
	place *place
	kind  string
}

func newMemory(first address) *memory {
	return &memory{
		noSearch: map[sources.List]time.Time{}, noExpand: map[sources.List]time.Time{},
		opens: map[*place]identity{}, noSelf: map[*place]time.Time{}, answered: first,
	}
}

// maySearch reports whether search was not refused lately: some accounts have none.
func (m *memory) maySearch(l sources.List, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !now.Before(m.noSearch[l])
}

func (m *memory) searchRefused(l sources.List, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.noSearch[l] = now.Add(refusalPause)
}

// mayExpand reports whether the key was not refused lately what a group's objects name.
func (m *memory) mayExpand(l sources.List, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !now.Before(m.noExpand[l])
}

func (m *memory) expansionRefused(l sources.List, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.noExpand[l] = now.Add(refusalPause)
}

// identityOf says which account a place's key was seen to open.
func (m *memory) identityOf(p *place) identity {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.opens[p]
}

// mayAskSelf reports whether it is worth asking which account a place's key opens: nobody
// knows, and it was not refused lately.
func (m *memory) mayAskSelf(p *place, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.opens[p] == notAsked || m.opens[p] == notTold && !now.Before(m.noSelf[p])
}

func (m *memory) identified(p *place, as identity, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opens[p], m.noSelf[p] = as, now.Add(refusalPause)
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
