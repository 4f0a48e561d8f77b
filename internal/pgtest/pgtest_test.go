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
