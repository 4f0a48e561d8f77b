package guard

import (
	"context"
	"time"
)

// SetPause replaces the wait between two attempts.
func SetPause(g *Guard, pause func(context.Context, time.Duration) error) { g.pause = pause }
