package stripetest

import (
	"container/heap"
	"time"
)

// agenda holds what will happen later on the simulated clock, in order of time.
type agenda []job

type job struct {
	at  time.Time
	seq int
	do  func(at time.Time)
}

func (a agenda) Len() int      { return len(a) }
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a agenda) Less(i, j int) bool {
	if c := a[i].at.Compare(a[j].at); c != 0 {
		return c < 0
	}
	return a[i].seq < a[j].seq
}
func (a *agenda) Push(x any) { *a = append(*a, x.(job)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// later puts a job on the agenda.
func (s *Server) later(at time.Time, do func(at time.Time)) {
	s.seq++
	heap.Push(&s.agenda, job{at: at, seq: s.seq, do: do})
}

// advance does what has become due by now, each job as of its own time.
func (s *Server) advance(now time.Time) {
	for len(s.agenda) > 0 && !s.agenda[0].at.After(now) {
		due := heap.Pop(&s.agenda).(job)
		due.do(due.at)
	}
}
