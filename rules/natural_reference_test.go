package rules

import "testing"

func TestNaturalReferencesAreFolded(t *testing.T) {
	t.Parallel()
	for _, same := range [][]string{
		{"ACME-2026-0042", "acme 2026/42", "Acme.2026.042", " acme2026-42\t", "ＡＣＭＥ 2026－42", "A C M E 2026_42"},
		{"RE 42", "re-0042", "RE42", "Re. 00042", "\"RE#42\""},
		{"Müller-7", "Mu\u0308ller 7", "MüLLER07"},
		{"x0", "X-00"},
		{"10", "010"},
		{"発注12", "発注-012", "発注１２"},
		{"a\u200bb", "AB"},
	} {
		for _, other := range same[1:] {
			if a, b := foldReference(same[0]), foldReference(other); a != b {
				t.Errorf("%q is %q and %q is %q", same[0], a, other, b)
			}
		}
	}
	for _, other := range [][2]string{
		{"1-23", "12-3"}, {"1-23", "123"}, {"42", "420"}, {"42", "4200"}, {"RE 42", "RE 42a"}, {"RE42", "RG42"}, {"100", "10"},
		{"x", "x0"}, {"1a2", "12"}, {"Müller 7", "Muller 7"}, {"ACME 0", "ACME"},
		{"0", "000"}, {"--", "//"}, {"発注", "発 注"}, {"", "-"},
	} {
		if a, b := foldReference(other[0]), foldReference(other[1]); a == b {
			t.Errorf("%q and %q are both %q", other[0], other[1], a)
		}
	}
}
