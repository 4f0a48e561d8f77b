package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is the version that whoever builds it names (-X main.release=…), where no
// repository is at hand from which the toolchain tells it.
var release string

func newVersionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Say which build this is", Args: exactly(),
		RunE: a.verb(func(context.Context, []string) error {
			v := struct {
				Version  string `json:"version"`
				Revision string `json:"revision"`
				Modified bool   `json:"modified"`
				Go       string `json:"go"`
			}{Version: "unknown", Go: runtime.Version()}
			if info, ok := debug.ReadBuildInfo(); ok {
				v.Version = cmp.Or(release, info.Main.Version)
				for _, s := range info.Settings {
					switch s.Key {
					case "vcs.revision":
						v.Revision = s.Value
					case "vcs.modified":
						v.Modified = s.Value == "true"
					}
				}
			}
			return a.print(v, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "reconciler %s %s\n", v.Version, v.Go)
				return err
			})
		}),
	}
}
