// Command reconciler finds out what really happened to operations whose answer was
// lost. This package holds arguments, output and exit codes, one file per verb, and
// nothing else.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// The first signal asks for an orderly end, the second one ends at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop()
	}()
	os.Exit(run(ctx, os.Args[1:], os.Environ(), streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}
