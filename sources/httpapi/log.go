package httpapi

import (
	"errors"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// logged is an event that says what became of its object.
type logged struct {
	at     time.Time
	status recon.EffectStatus // completed or failed
}

// read gives the events that say something, in order of time.
func (l *eventLog) read(list any, d dates) ([]logged, error) {
	entries, ok := list.([]any)
	if !ok && list != nil {
		return nil, errors.New("the log is not a list")
	}
	var events []logged
	for _, entry := range entries {
		word, err := l.kind.text(entry)
		if err != nil || word == "" {
			return nil, errors.New("an event has no type")
		}
		status, says := l.types[word]
		if !says {
			continue
		}
		text, err := l.at.text(entry)
		if err != nil {
			return nil, errTime
		}
		at, err := d.read(text)
		if err != nil {
			return nil, err
		}
		events = append(events, logged{at, status})
	}
	slices.SortStableFunc(events, func(a, b logged) int { return a.at.Compare(b.at) })
	return events, nil
}

// decideByLog gives the status to which the events lead. A failure after a completion
// undoes it for good; a completion after a mere failure stands, since a first attempt may
// fail and a later one succeed.
func decideByLog(status recon.EffectStatus, events []logged) recon.EffectStatus {
	for i, e := range events {
		switch {
		case i == 0, e.status == recon.Completed && status != recon.Reversed:
			status = e.status
		case status == recon.Completed:
			status = recon.Reversed
		}
	}
	return status
}
