package turns

import (
	"testing"
	"time"
)

func TestOneRoundThatIsDisturbedChangesLittle(t *testing.T) {
	t.Parallel()
	var r Rounds
	for _, round := range [][2]time.Duration{{3 * time.Second, time.Second}, {90 * time.Second, time.Second}, {8 * time.Second, 4 * time.Second}} {
		r.Add(round[0], round[1])
	}
	got := testing.Benchmark(func(b *testing.B) { r.Report(b, "ratio") }).Extra
	if got["ratio"] != 3 || got["s-ours"] != 8 || got["s-limit"] != 1 {
		t.Errorf("reported %v", got)
	}
}

func TestTheMedianIsInTheMiddle(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{7}, 7}, {[]float64{9, 1}, 5}, {[]float64{3, 9, 1}, 3}, {[]float64{4, 1, 2, 100}, 3}} {
		if got := Median(tt.values); got != tt.want {
			t.Errorf("the median of %v is %v, want %v", tt.values, got, tt.want)
		}
	}
}
