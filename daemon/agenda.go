package daemon

import (
	"time"

	"github.com/seed-1c4f4dc2/reconciler/config"
)

// Planned is one run of the schedule: its name, as in the ledger's runs, and when it is due.
type Planned struct {
	Name string
	Spec config.Spec
}

// Agenda gives all runs that a daemon of this configuration does.
func Agenda(c *config.Config) []Planned {
	list := []Planned{{runHousekeeping, config.Hourly()}}
	for _, source := range c.Sources {
		for _, r := range scheduled(c) {
			list = append(list, Planned{r.name + "/" + string(source.Name), r.spec})
		}
	}
	if spec := c.Schedule.Report; !spec.Off() {
		list = append(list, Planned{runReport, spec})
	}
	return list
}

// LastDue is the newest due time at or before now; zero when there was none within a year.
func LastDue(spec config.Spec, now time.Time) time.Time { return lastDue(spec, now) }
