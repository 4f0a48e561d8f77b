package stripe

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func TestWhatIsKnownOfTheKeysOfAccounts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		account, key string
		seen         identity
		is           string
		lacks        []string // how each begins
	}{
		"a restricted key, not used yet":        {"acct_1", "rk_live_TESTONLY", notAsked, "", nil},
		"a restricted key of the account":       {"acct_1", "rk_live_TESTONLY", isRight, "the key opens this account", nil},
		"a secret key":                          {"acct_1", "sk_live_TESTONLY", isRight, "the key opens this account", []string{"the key is a secret key, sk_…, that may also write"}},
		"a key that may not read its account":   {"acct_1", "rk_live_TESTONLY", notTold, "", []string{"the key may not read which account it opens"}},
		"an account that is not named":          {"", "rk_live_TESTONLY", notTold, "", []string{"whether the key opens the right account cannot be told: write the account's id"}},
		"one that opens another":                {"acct_1", "rk_live_TESTONLY", isWrong, "", nil}, // which every list says
		"a secret key that tells of no account": {"", "sk_live_TESTONLY", notTold, "", []string{"whether", "the key is a secret key"}},
	} {
		s, err := New("s", Settings{Account: c.account, APIKey: recon.NewSecret(c.key)}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		s.memory.identified(s.places[0], c.seen, time.Time{})
		got := s.Access()
		if len(got) != 1 || got[0].Is != c.is || len(got[0].Lacks) != len(c.lacks) {
			t.Errorf("%s: %+v, want %q and %q", name, got, c.is, c.lacks)
			continue
		}
		for i, lack := range got[0].Lacks {
			if !strings.HasPrefix(lack, c.lacks[i]) || strings.Contains(lack, "TESTONLY") {
				t.Errorf("%s: %q, want %q", name, lack, c.lacks[i])
			}
		}
	}
}
