// Command dashboard writes the Grafana dashboard to standard output, for `make generate`.
package main

import (
	"fmt"
	"os"
)

func main() {
	text, err := JSON()
	if err != nil {
		fmt.Fprintln(os.Stderr, "dashboard:", err)
		os.Exit(1)
	}
	if _, err := os.Stdout.Write(text); err != nil {
		os.Exit(1)
	}
}
