package breaker

import "testing"

func TestALineMayBeOfEitherEndAndOneOfBothMustBe(t *testing.T) {
	t.Parallel()
	e := ends{[]string{"both", "early"}, []string{"both", "late"}}
	for _, tt := range []struct {
		broken []string
		want   string
	}{
		{[]string{"both", "early"}, ""}, {[]string{"both", "late"}, ""}, {[]string{"both", "early", "late"}, ""},
		{[]string{"early"}, "missing: both\n"}, {[]string{"both", "other"}, "strange: other\n"},
	} {
		if got := e.differ(tt.broken); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.broken, got, tt.want)
		}
	}
}
