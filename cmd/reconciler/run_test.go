package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		err  error
		want int
	}{
		{"a failure", errors.New("x"), exitFailed},
		{"wrong use", fmt.Errorf("a: %w", misuse("b")), exitUsage},
		{"a faulty configuration", &config.Faults{}, exitUsage},
		{"a missing configuration", &config.MissingError{Err: errors.New("x")}, exitUsage},
		{"findings, where a flag asks", &foundError{"1 finding"}, exitFound},
		{"another run", fmt.Errorf("sweep: %w", &ledger.RunningError{}), exitHeld},
		{"another holder", &ledger.HeldError{}, exitHeld},
		{"two places that others hold", errors.Join(&ledger.RunningError{}, &ledger.HeldError{}), exitHeld},
		{"one held place and one failure", errors.Join(&ledger.RunningError{}, nil, errors.New("x")), exitFailed},
		{"a limit that was reached", errors.Join(&sweep.LimitError{}), exitFailed},
	} {
		if got := exitCode(tt.err); got != tt.want {
			t.Errorf("%s: exit %d, want %d", tt.name, got, tt.want)
		}
	}
}
