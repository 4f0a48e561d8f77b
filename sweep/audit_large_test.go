//go:build bench_large

package sweep

import "testing"

// BenchmarkAuditLarge accounts for ten million operations and as many effects beside one
// million. Their ids are random, so that no index is written in order. x-million is the ratio
// of the times, at most 12; MiB is what our process held at most.
func BenchmarkAuditLarge(b *testing.B) {
	for b.Loop() {
		_, million, _ := auditOnce(b, 1_000_000)
		joined, large, most := auditOnce(b, 10_000_000)
		b.ReportMetric(large.Seconds()/million.Seconds(), "x-million")
		b.ReportMetric(large.Seconds(), "s-ours")
		b.ReportMetric(million.Seconds(), "s-million")
		b.ReportMetric(large.Seconds()/joined.Seconds(), "x-join")
		b.ReportMetric(float64(most)/(1<<20), "MiB")
	}
}
