package world

import (
	"container/heap"
	"sync/atomic"
	"time"
)

// clock is the simulated time that the whole world shares. Servers read it from
// their own goroutines, so it is atomic; only the agenda moves it.
type clock struct{ nanos atomic.Int64 }

func (c *clock) now() time.Time  { return time.Unix(0, c.nanos.Load()).UTC() }
func (c *clock) set(t time.Time) { c.nanos.Store(t.UnixNano()) }

// agenda holds what will happen, in order of time; what falls on one instant happens
// in the order in which it was planned, so that a seed always gives the same world.
type agenda struct {
	items []appointment
	made  int
}

type appointment struct {
	at  time.Time
	seq int
	do  func() error
}

func (a *agenda) Len() int { return len(a.items) }
func (a *agenda) Less(i, j int) bool {
	if !a.items[i].at.Equal(a.items[j].at) {
		return a.items[i].at.Before(a.items[j].at)
	}
	return a.items[i].seq < a.items[j].seq
}
func (a *agenda) Swap(i, j int) { a.items[i], a.items[j] = a.items[j], a.items[i] }
func (a *agenda) Push(x any)    { a.items = append(a.items, x.(appointment)) }
func (a *agenda) Pop() any {
	last := len(a.items) - 1
	x := a.items[last]
	a.items = a.items[:last]
	return x
}

// plan puts something on the agenda.
func (a *agenda) plan(at time.Time, do func() error) {
	a.made++
	heap.Push(a, appointment{at: at, seq: a.made, do: do})
}

// next takes what happens next off the agenda; false when nothing is left.
func (a *agenda) next() (appointment, bool) {
	if len(a.items) == 0 {
		return appointment{}, false
	}
	return heap.Pop(a).(appointment), true
}
