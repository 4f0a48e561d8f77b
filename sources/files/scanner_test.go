package files

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// scanAll gives the records of a text with their lines, and at last what is wrong with it.
// Without blocks every line is looked at with care.
func scanAll(in string, blocks bool, wanted Wanted) (records []string, lines []int) {
	t := &text{buf: []byte(in), end: len(in), eof: true, number: 1}
	t.note = func(line int, format string, args ...any) {
		records = append(records, fmt.Sprintf("note at %d: "+format, append([]any{line}, args...)...))
		lines = append(lines, 0)
	}
	s := newScanner(t, ';')
	s.wanted = wanted
	if !blocks {
		s.block.rough = math.MaxInt
	}
	for {
		more, err := s.next()
		if !more {
			return append(records, fmt.Sprint("end: ", err)), append(lines, 0)
		}
		records = append(records, fmt.Sprintf("%d %v %q", s.line, s.cut, s.fields))
		lines = append(lines, s.line)
	}
}

// TestLawBlocksOfLinesAreReadAsLines holds the quick way through plain lines against the
// careful one, over texts of everything that either has to notice. Where only some rows are
// wanted, they are what they are among all.
func TestLawBlocksOfLinesAreReadAsLines(t *testing.T) {
	t.Parallel()
	plain := []string{"a", "re_1", ";", ";;", "\n", "\n\n", ";\n", "x;y;z\n", " ", "\t", "\x01", "é", "1234567890123456"}
	rough := append([]string{"\r\n", "\r", "\"", "\"\"", "\";\"", "\"a\nb\"", "\x00", "\ufffd", "\xff"}, plain...)
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(rapid.SampledFrom(plain), 0, 40).Draw(t, "plain")
		if rapid.Bool().Draw(t, "something rough") {
			pieces = append(pieces, rapid.SliceOfN(rapid.SampledFrom(rough), 0, 20).Draw(t, "rough")...)
		}
		in := strings.Repeat(strings.Join(pieces, ""), rapid.SampledFrom([]int{1, 2, 300}).Draw(t, "times"))
		careful, lines := scanAll(in, false, nil)
		if quick, _ := scanAll(in, true, nil); !slices.Equal(careful, quick) {
			t.Fatalf("%.400q is read as\n%.400q\nand in blocks as\n%.400q", in, careful, quick)
		}
		if !strings.HasSuffix(careful[len(careful)-1], "<nil>") || strings.Contains(in, "\ufffd") {
			return // what is passed over is not checked
		}
		every := rapid.IntRange(1, 400).Draw(t, "every")
		wanted := func(line int) int { return (line + every - 1) / every * every }
		some, at := scanAll(in, true, wanted)
		is := func(line int) bool { return line%every == 0 && line > 0 }
		if a, b := only(careful, lines, is), only(some, at, is); !slices.Equal(a, b) {
			t.Fatalf("%.400q: wanted are\n%.400q\nand found\n%.400q", in, a, b)
		}
	})
}

func only(records []string, lines []int, is func(int) bool) (kept []string) {
	for i, r := range records {
		if is(lines[i]) {
			kept = append(kept, r)
		}
	}
	return kept
}
