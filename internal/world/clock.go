package world

import (
	"container/heap"
	"sync/atomic"
	"time"
)

// Clock is the simulated time that the whole world shares. Servers read it from
// their own goroutines, so it is atomic; only whoever lives an agenda moves it.
type Clock struct{ nanos atomic.Int64 }

// Now is what time it is.
func (c *Clock) Now() time.Time { return time.Unix(0, c.nanos.Load()).UTC() }

// Set makes it that time.
func (c *Clock) Set(t time.Time) { c.nanos.Store(t.UnixNano()) }

// Agenda holds what will happen, in order of time; what falls on one instant happens
// in the order in which it was planned, so that a seed always gives the same world.
type Agenda struct {
	items appointments
	made  int
}

// Appointment is one thing that happens, and when.
type Appointment struct {
	At  time.Time
	Do  func() error
	seq int
}

// appointments is a heap, earliest first.
type appointments []Appointment

func (a appointments) Len() int { return len(a) }
func (a appointments) Less(i, j int) bool {
	if !a[i].At.Equal(a[j].At) {
		return a[i].At.Before(a[j].At)
	}
	return a[i].seq < a[j].seq
}
func (a appointments) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *appointments) Push(x any)   { *a = append(*a, x.(Appointment)) }
func (a *appointments) Pop() any {
	last := len(*a) - 1
	x := (*a)[last]
	*a = (*a)[:last]
	return x
}

// Plan puts something on the agenda.
func (a *Agenda) Plan(at time.Time, do func() error) {
	a.made++
	heap.Push(&a.items, Appointment{At: at, seq: a.made, Do: do})
}

// Next takes what happens next off the agenda; false when nothing is left.
func (a *Agenda) Next() (Appointment, bool) {
	if len(a.items) == 0 {
		return Appointment{}, false
	}
	return heap.Pop(&a.items).(Appointment), true
}
