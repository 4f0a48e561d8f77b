package pgtest

import (
	"fmt"
	"testing"
	"time"
)

func TestManyDatabases(t *testing.T) {
	EmptyURL(t)
	for i := range 20 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t0 := time.Now()
			pool := EmptyPool(t)
			t.Log(time.Since(t0))
			if _, err := pool.Exec(t.Context(), "create table x (a int)"); err != nil {
				t.Fatal(err)
			}
			t0 = time.Now()
			t.Cleanup(func() { t.Log("end", time.Since(t0)) })
		})
	}
}

func TestMig(t *testing.T) {
	for i := range 3 {
		t0 := time.Now()
		p := Pool(t, SimulatedTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
		t.Log(i, time.Since(t0))
		var x time.Time
		if err := p.QueryRow(t.Context(), "select reconciler.clock()").Scan(&x); err != nil {
			t.Fatal(err)
		}
		t.Log(x)
	}
}
