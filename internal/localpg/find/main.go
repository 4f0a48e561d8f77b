// Command find prints the folder of the newest PostgreSQL programs on this machine, or
// says which one command installs them. The Makefile asks it, so that there is one list
// of places to look in.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/seed-1c4f4dc2/reconciler/internal/localpg"
)

func main() {
	folder, err := localpg.Find(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(folder)
}
