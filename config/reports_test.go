package config

import (
	"slices"
	"strings"
	"testing"
)

// Reports are made where a folder is named, and told to those who want the digest unless
// others are named.
func TestReportsNeedAFolderAndGoToWhomTheDigestGoes(t *testing.T) {
	t.Parallel()
	const channels = `
escalation:
  destinations:
    - {name: recon, kind: slack, settings: {channel: "#recon", token: "${KEY}"}}
    - {name: leads, kind: slack, settings: {channel: "#leads", token: "${KEY}"}}
  digest: {to: [leads]}
`
	for _, tt := range []struct {
		name, text string
		when       string
		to         []string
		note       string
	}{
		{"no folder", channels, "off", []string{"leads"}, ""},
		{"a folder", channels + "reports: {out: /srv/reports}", "0 3 * * *", []string{"leads"}, ""},
		{"others", channels + "reports: {out: /srv/reports, to: [recon]}", "0 3 * * *", []string{"recon"}, ""},
		{"nobody", "reports: {out: /srv/reports}", "0 3 * * *", nil, ""},
		{"switched off", "reports: {out: /srv/reports}\nschedule: {report: \"off\"}", "off", nil, "no report is made: schedule.report is off"},
		{"a time in vain", "schedule: {report: \"0 5 * * *\"}", "off", nil, "no report is made: reports.out names no folder"},
	} {
		c, err := Parse("test.yaml", []byte(tt.text), env("KEY", secret))
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		var notes []string
		for _, n := range c.Notes {
			if strings.Contains(n.Path, "report") {
				notes = append(notes, n.Text)
			}
		}
		if c.Schedule.Report.Text != tt.when || c.Schedule.Report.Off() != (tt.when == "off") || !slices.Equal(c.Reports.To, tt.to) || strings.Join(notes, "; ") != tt.note {
			t.Errorf("%s: %s to %v, notes %v", tt.name, c.Schedule.Report.Text, c.Reports.To, notes)
		}
	}
}
