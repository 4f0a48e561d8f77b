package reports

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// File is one file of a report, by its name in the report's folder.
type File struct {
	Name string
	Data []byte
}

// NightlyFiles renders a report whole: the document, text, CSV, the page, and a page for
// each story. The page comes last, since it links the others.
func NightlyFiles(n *Nightly) ([]File, error) {
	base := n.Base()
	var files []File
	for _, part := range []struct {
		name  string
		write func(io.Writer, *Nightly) error
	}{
		{base + ".json", NightlyJSON},
		{base + ".txt", NightlyText},
		{base + "-totals.csv", NightlyTotalsCSV},
		{base + "-findings.csv", NightlyFindingsCSV},
	} {
		var b bytes.Buffer
		if err := part.write(&b, n); err != nil {
			return nil, fmt.Errorf("write %s: %w", part.name, err)
		}
		files = append(files, File{part.name, b.Bytes()})
	}
	for _, s := range n.Stories {
		var b bytes.Buffer
		if err := storyHTML(&b, n, s); err != nil {
			return nil, fmt.Errorf("write %s: %w", n.storyFile(s), err)
		}
		files = append(files, File{n.storyFile(s), b.Bytes()})
	}
	var b bytes.Buffer
	if err := NightlyHTML(&b, n); err != nil {
		return nil, fmt.Errorf("write %s.html: %w", base, err)
	}
	return append(files, File{base + ".html", b.Bytes()}), nil
}

// Base is what the names of a report's files begin with.
func (n *Nightly) Base() string {
	return "report-" + strings.NewReplacer(" ", "-", ":", "").Replace(n.Window.Name)
}

// storyFile is a page of this report alone: another day tells the operation as it stood
// then.
func (n *Nightly) storyFile(s StoryPage) string { return n.Base() + "-" + s.File }
