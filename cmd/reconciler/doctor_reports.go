package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
)

// mayChange asks for the right to make files in a folder: to write and to enter.
const mayChange = 2 | 1

// reportAdvice tells whether the folder of the daily reports can be written to, by whoever asks.
func reportAdvice(c *config.Config) []ledger.Advice {
	const about = "reports.out"
	out := c.Reports.Out
	if out == "" || c.Schedule.Report.Off() {
		return nil
	}
	dir, err := nearest(out)
	if err == nil {
		err = syscall.Access(dir, mayChange)
	}
	switch {
	case err != nil:
		return []ledger.Advice{faulty(about, "%s: no report can be written there by the user that asks (%v): "+
			"make the folder and give it to the user that runs `reconciler serve`, or name another one", out, err)}
	case dir != out:
		return []ledger.Advice{good(about, "%s is made with the first report, in %s", out, dir)}
	}
	return []ledger.Advice{good(about, "%s can be written to", out)}
}

// nearest gives the folder itself, or the nearest one above it that there is.
func nearest(dir string) (string, error) {
	for {
		info, err := os.Stat(dir)
		above := filepath.Dir(dir)
		switch {
		case err == nil && !info.IsDir():
			return "", errors.New(dir + " is a file")
		case err == nil:
			return dir, nil
		case !errors.Is(err, fs.ErrNotExist) || above == dir:
			return "", errors.Unwrap(err)
		}
		dir = above
	}
}
