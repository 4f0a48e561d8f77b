// Package browsertest opens the pages of a report in a real browser.
package browsertest

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/seed-1c4f4dc2/reconciler/reports"
)

// pages writes the pages of the sample report into a folder and names them.
func pages(t *testing.T) (dir string, names []string) {
	t.Helper()
	document, err := os.ReadFile("../testdata/nightly.json")
	if err != nil {
		t.Fatal(err)
	}
	n, err := reports.ReadNightly(document)
	if err != nil {
		t.Fatal(err)
	}
	files, err := reports.NightlyFiles(n)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f.Name, ".html") {
			names = append(names, f.Name)
		}
	}
	return dir, names
}

// browser is one Chromium with a profile of its own, which asks nobody and ends with the
// test, whatever it has started.
func browser(t *testing.T) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.UserDataDir(profile(t)), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.ModifyCmdFunc(together),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Run(ctx); err != nil {
		t.Fatalf("start the browser (tools/chromium installs it): %v", err)
	}
	return ctx
}

// together makes the browser and the processes that it starts one group, which is killed
// as one: a helper that outlives the browser goes on writing to the profile.
func together(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// profile is a folder that is removed when the last process of the browser has died, which
// is soon after it was killed and not at once. That is why it is not t.TempDir.
func profile(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "browser")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 100 {
			if err = os.RemoveAll(dir); err == nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Errorf("the browser does not end: %v", err)
	})
	return dir
}

// watch collects requests and what the console says.
type watch struct {
	sync.Mutex
	requests, faults []string
}

func (w *watch) hear(event any) {
	w.Lock()
	defer w.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		w.requests = append(w.requests, e.Request.URL)
	case *runtime.EventConsoleAPICalled:
		w.faults = append(w.faults, fmt.Sprintf("console: %s %v", e.Type, e.Args))
	case *runtime.EventExceptionThrown:
		w.faults = append(w.faults, "exception: "+e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		w.faults = append(w.faults, "log: "+e.Entry.Text)
	}
}

// Pages ask nobody for anything, say nothing in the console, fit the width of a phone,
// and can be read in both themes.
func TestPagesOfAReportInABrowser(t *testing.T) {
	dir, names := pages(t)
	ctx := browser(t)
	w := &watch{}
	chromedp.ListenTarget(ctx, w.hear)
	if err := chromedp.Run(ctx, network.Enable(), log.Enable(), runtime.Enable()); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		url := "file://" + filepath.Join(dir, name)
		for _, theme := range []string{"light", "dark"} {
			for _, width := range []int64{390, 900, 1100} {
				look(t, ctx, url, "screen", theme, width)
			}
		}
		look(t, ctx, url, "print", "dark", 700) // paper is white whatever the screen is
		prints(t, ctx, url)
	}
	w.Lock()
	defer w.Unlock()
	for _, r := range w.requests {
		if !strings.HasPrefix(r, "file://"+dir) && r != "data:," {
			t.Errorf("a page asked for %s", r)
		}
	}
	if len(w.requests) == 0 {
		t.Error("nothing was loaded, so nothing was seen")
	}
	for _, f := range w.faults {
		t.Error(f)
	}
}

// How much texts and charts stand out from what is behind them: WCAG 2.2 AA.
const (
	textContrast  = 4.5
	chartContrast = 3.0
)

// sample is a text or a part of a chart with its colour and what is behind it.
type sample struct {
	Text, Front, Back string
	Chart             bool
}

const samplesScript = `(() => {
	const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (c !== 'rgba(0, 0, 0, 0)') return c; } return 'rgb(255, 255, 255)'; };
	const list = [];
	for (const e of document.querySelectorAll('body *')) {
		if (e.closest('svg')) { if (e.tagName === 'rect') list.push({Text: 'bar', Front: getComputedStyle(e).fill, Back: behind(e.closest('svg')), Chart: true}); continue; }
		const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
		if (own) list.push({Text: e.textContent.trim().slice(0, 40), Front: getComputedStyle(e).color, Back: behind(e), Chart: false});
	}
	return list;
})()`

const overflowScript = `(() => {
	const wide = innerWidth, list = [];
	if (document.documentElement.scrollWidth > wide) list.push('page is ' + document.documentElement.scrollWidth + ' wide');
	for (const e of document.querySelectorAll('body *')) {
		const r = e.getBoundingClientRect();
		if (r.width > 1 && (r.right > wide + 1 || r.left < -1)) list.push(e.tagName + ' ' + e.className + ': ' + e.textContent.trim().slice(0, 40));
	}
	return list;
})()`

func look(t *testing.T, ctx context.Context, url, media, theme string, width int64) {
	t.Helper()
	var samples []sample
	var overflows []string
	var shot []byte
	err := chromedp.Run(ctx,
		emulation.SetDeviceMetricsOverride(width, 844, 2, width < 500),
		emulation.SetEmulatedMedia().WithMedia(media).WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}),
		chromedp.Navigate(url),
		chromedp.Evaluate(samplesScript, &samples),
		chromedp.Evaluate(overflowScript, &overflows),
	)
	if err == nil && os.Getenv("SHOTS") != "" {
		err = chromedp.Run(ctx, chromedp.FullScreenshot(&shot, 100))
	}
	if err != nil {
		t.Fatalf("%s, %s, %d px: %v", url, theme, width, err)
	}
	for _, o := range overflows {
		t.Errorf("%s, %d px wide: runs out of the page: %s", filepath.Base(url), width, o)
	}
	if len(samples) < 20 {
		t.Errorf("%s: only %d texts were seen", url, len(samples))
	}
	for _, s := range samples {
		least := textContrast
		if s.Chart {
			least = chartContrast
		}
		if c := contrast(colour(t, s.Front), colour(t, s.Back)); c < least {
			t.Errorf("%s, %s: %q has a contrast of %.1f (%s on %s), want %.1f", filepath.Base(url), theme, s.Text, c, s.Front, s.Back, least)
		}
	}
	keep(t, fmt.Sprintf("%s-%s-%s-%d.png", strings.TrimSuffix(filepath.Base(url), ".html"), media, theme, width), shot)
}

func prints(t *testing.T, ctx context.Context, url string) {
	t.Helper()
	var pdf []byte
	err := chromedp.Run(ctx, chromedp.ActionFunc(func(ctx context.Context) (err error) {
		pdf, _, err = page.PrintToPDF().WithPrintBackground(true).Do(ctx)
		return err
	}))
	if err != nil || !strings.HasPrefix(string(pdf), "%PDF-") || len(pdf) < 5000 {
		t.Errorf("%s does not print: %d bytes, %v", url, len(pdf), err)
	}
	keep(t, strings.TrimSuffix(filepath.Base(url), ".html")+".pdf", pdf)
}

// keep leaves what was seen in the folder that the variable SHOTS names, to be looked at.
func keep(t *testing.T, name string, data []byte) {
	t.Helper()
	if dir := os.Getenv("SHOTS"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

var rgb = regexp.MustCompile(`^rgb\((\d+), (\d+), (\d+)\)$`)

func colour(t *testing.T, s string) (c [3]float64) {
	t.Helper()
	m := rgb.FindStringSubmatch(s)
	if m == nil {
		t.Fatalf("the colour %q cannot be judged", s)
	}
	for i := range c {
		n, err := strconv.Atoi(m[i+1])
		if err != nil {
			t.Fatal(err)
		}
		c[i] = float64(n) / 255
	}
	return c
}

// contrast is that of WCAG: 1 for the same colour, 21 for black on white.
func contrast(a, b [3]float64) float64 {
	x, y := luminance(a), luminance(b)
	return (math.Max(x, y) + 0.05) / (math.Min(x, y) + 0.05)
}

func luminance(c [3]float64) float64 {
	for i, v := range c {
		if v <= 0.04045 {
			c[i] = v / 12.92
		} else {
			c[i] = math.Pow((v+0.055)/1.055, 2.4)
		}
	}
	return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2]
}

// Black on white is the most there is, and the measure tells pale from plain text.
func TestContrastIsMeasured(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want float64
	}{{"rgb(0, 0, 0)", "rgb(255, 255, 255)", 21}, {"rgb(119, 119, 119)", "rgb(255, 255, 255)", 4.48}, {"rgb(9, 9, 9)", "rgb(9, 9, 9)", 1}} {
		if got := contrast(colour(t, tt.a), colour(t, tt.b)); math.Abs(got-tt.want) > 0.01 {
			t.Errorf("%s on %s: %.2f, want %.2f", tt.a, tt.b, got, tt.want)
		}
	}
}
