package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/internal/localpg"
)

// machine is what the numbers depend on. What could not be found out is empty or 0.
type machine struct {
	cores      int
	processor  string
	memory     int64   // bytes
	syncs      float64 // how many writes of a page a second reach the disk, one after the other
	goVersion  string
	postgresql string
}

// look finds out what the machine is.
func look(ctx context.Context) machine {
	m := machine{cores: runtime.NumCPU(), goVersion: strings.TrimPrefix(runtime.Version(), "go")}
	m.processor = first(`model name\s*:\s*(.+)`, "/proc/cpuinfo")
	if kB, err := strconv.ParseInt(first(`MemTotal:\s*(\d+) kB`, "/proc/meminfo"), 10, 64); err == nil {
		m.memory = kB << 10
	}
	m.syncs = syncRate(localpg.ReachableTemp(), 2*time.Second)
	if folder, err := localpg.Find(ctx); err == nil {
		said, _ := exec.CommandContext(ctx, filepath.Join(folder, "postgres"), "--version").Output()
		m.postgresql = regexp.MustCompile(`\d+(\.\d+)*`).FindString(string(said))
	}
	return m
}

// first gives what the pattern's group finds first in a file.
func first(pattern, file string) string {
	text, _ := os.ReadFile(file)
	found := regexp.MustCompile(pattern).FindSubmatch(text)
	if found == nil {
		return ""
	}
	return string(found[1])
}

// syncRate writes a page of 8 KiB again and again, each to the disk before the next, as a
// database that keeps its word does; 0 where the folder cannot be written.
func syncRate(dir string, span time.Duration) float64 {
	file, err := os.CreateTemp(dir, "sync-")
	if err != nil {
		return 0
	}
	defer os.Remove(file.Name())
	defer file.Close()
	page, n, began := make([]byte, 8<<10), 0, time.Now()
	for ; time.Since(began) < span; n++ {
		if _, err := file.WriteAt(page, 0); err != nil || file.Sync() != nil {
			return 0
		}
	}
	return float64(n) / time.Since(began).Seconds()
}

func (m machine) String() string {
	known := func(text string) string {
		if text == "" {
			return "not known"
		}
		return text
	}
	return fmt.Sprintf(`| the machine | |
|---|---|
| cores | %d (%s) |
| memory | %s GiB |
| writes of 8 KiB that reach the disk, one after the other | %s a second |
| Go | %s |
| PostgreSQL | %s |
`, m.cores, known(m.processor), number(float64(m.memory)/(1<<30)), number(m.syncs), known(m.goVersion), known(m.postgresql))
}
