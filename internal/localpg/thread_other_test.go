//go:build unix && !linux

package localpg

import "testing"

// Only Linux ties a child to the thread that started it.
func threadID() int { return 0 }

func awaitThreadGone(*testing.T, int) {}
