package daemon

import "github.com/prometheus/client_golang/prometheus"

// newClicks counts what people do in Slack.
func newClicks() *prometheus.CounterVec {
	c := counter("slack_actions_total", "What people did in Slack, by what became of it.", "result")
	for _, r := range clickResults {
		c.WithLabelValues(r)
	}
	return c
}

// clicked counts one thing that somebody did in Slack.
func (m *metrics) clicked(result string) { m.clicks.WithLabelValues(result).Inc() }
