package config

import (
	"fmt"
	"regexp"
	"sort"
	"strings"
)

// Fault is one thing that is wrong in the file.
type Fault struct {
	Line    int    // 1-based; 0 when the fault has no place
	Column  int    // 1-based
	Path    string // the key, such as actions.refund.create.repeat
	Problem string // what is wrong, and what to write instead
	Excerpt string // the line as it stands in the file, secrets masked
}

// Faults is the error of a file that does not hold: every fault of it, by line.
type Faults struct {
	File string
	List []Fault
}

func (f *Faults) Error() string {
	var b strings.Builder
	noun := "faults"
	if len(f.List) == 1 {
		noun = "fault"
	}
	fmt.Fprintf(&b, "%s: %d %s", f.File, len(f.List), noun)
	for _, one := range f.List {
		b.WriteString("\n  ")
		if one.Line > 0 {
			fmt.Fprintf(&b, "line %d: ", one.Line)
		}
		if one.Path != "" {
			b.WriteString(one.Path + ": ")
		}
		b.WriteString(one.Problem)
		if one.Excerpt != "" {
			b.WriteString("\n      | " + one.Excerpt)
		}
	}
	return b.String()
}

// sort orders the faults as a reader meets them.
func (f *Faults) sort() {
	sort.SliceStable(f.List, func(i, j int) bool {
		a, b := f.List[i], f.List[j]
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Column < b.Column
	})
}

// Note tells of something that is understood and valid, and that this build does
// not serve or that a reader may not expect.
type Note struct {
	Line int
	Path string
	Text string
}

func (n Note) String() string {
	if n.Line == 0 {
		return n.Path + ": " + n.Text
	}
	return fmt.Sprintf("line %d: %s: %s", n.Line, n.Path, n.Text)
}

const maxExcerpt = 120

// secretLike finds what must not be shown again even where somebody wrote it into
// the file: keys and tokens of the providers, and the password of a database URL.
var secretLike = regexp.MustCompile(`(sk_|rk_|whsec_|xox[a-z]-|xapp-)[A-Za-z0-9_-]+|(://[^:/@\s]*:)[^@\s]+@`)

// secretKey finds the value of a key that by its name holds a secret (the url of a database
// may hold a password, also as keywords), and secretAbove such a
// key whose value stands on the lines below it.
var (
	secretKey   = regexp.MustCompile(`(?i)\b(` + secretName + `)("[^"]*"|'[^']*'|\[[^\]]*\]?|["'][^"']*$|[^,}\s]+)`)
	secretAbove = regexp.MustCompile(`(?i)\b` + secretName + `([|>][-+0-9]*|\[[^\]]*|["'][^"']*)?$`)
)

const secretName = `(?:(?:\w+_)?(?:api_key|token|secrets?|password)|url)["']?\s*:\s*`

// below reports whether a line belongs to a secret that begins above it.
func below(lines []string, i int) bool {
	indent := func(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }
	item := strings.HasPrefix(strings.TrimSpace(lines[i]), "-")
	for above := i - 1; above >= 0; above-- {
		line := strings.TrimRight(lines[above], " \t\r")
		// What an item belongs to may begin as far left as itself.
		sibling := strings.HasPrefix(strings.TrimSpace(line), "-")
		if line != "" && (indent(line) < indent(lines[i]) || item && !sibling && indent(line) == indent(lines[i])) {
			return secretAbove.MatchString(line)
		}
	}
	return false
}

// excerpt gives a line of the file, short and without secrets.
func excerpt(lines []string, i int) string {
	line := lines[i]
	if below(lines, i) && !strings.Contains(restore(line), "${") {
		return "[redacted]"
	}
	line = secretKey.ReplaceAllStringFunc(restore(strings.TrimSpace(line)), func(m string) string {
		parts := secretKey.FindStringSubmatch(m)
		if strings.Contains(parts[2], "${") {
			return m
		}
		return parts[1] + "[redacted]"
	})
	line = mask(line)
	if runes := []rune(line); len(runes) > maxExcerpt {
		line = string(runes[:maxExcerpt]) + "…"
	}
	return line
}

// mask replaces what looks like a secret.
func mask(s string) string { return secretLike.ReplaceAllString(s, "${2}[redacted]") }
