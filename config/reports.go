package config

import "fmt"

// buildReports checks the section. Schedule and destinations are read before.
func (d *decoder) buildReports(r Reports, c *Config) {
	destinations := map[string]bool{}
	for _, dest := range c.Destinations {
		destinations[dest.Name] = true
	}
	for i, to := range r.To {
		d.isDestination(fmt.Sprintf("reports.to[%d]", i), to, destinations)
	}
	switch {
	case r.Out == "" && len(r.To) > 0:
		d.fault(nil, "reports.out", "is required where reports.to names destinations: the folder for the files")
	case r.Out == "" && !c.Schedule.Report.Off() && c.Schedule.Report.Text != defaults().Schedule.Report:
		d.note("schedule.report", "no report is made: reports.out names no folder")
	case r.Out != "" && c.Schedule.Report.Off():
		d.note("reports.out", "no report is made: schedule.report is off")
	}
	if r.Out == "" {
		c.Schedule.Report = Spec{Text: "off"}
	}
	if len(r.To) == 0 {
		r.To = c.Escalation.Digest.To
	}
	c.Reports = r
}
