package stripe

import (
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

var _ sources.Guarded = (*Source)(nil)

// mayWrite reports whether a key is one that opens everything, as its prefix says. What a
// restricted key may do, no reading tells.
func mayWrite(key recon.Secret) bool { return strings.HasPrefix(key.Reveal(), "sk_") }

// Access tells which account each key was seen to open, and which of them could do more
// than read.
func (s *Source) Access() []sources.Access {
	var all []sources.Access
	for _, p := range s.places {
		a := sources.Access{Account: recon.Account{Account: p.account, Mode: p.mode}}
		switch s.memory.identityOf(p) {
		case isRight:
			a.Is = "the key opens this account"
		case notTold:
			lack := "the key may not read which account it opens, and one of another account finds nothing: give it that permission, or compare them by hand"
			if !strings.HasPrefix(p.account, "acct_") {
				lack = "whether the key opens the right account cannot be told: write the account's id, acct_…"
			}
			a.Lacks = append(a.Lacks, lack)
		}
		if p.writes {
			a.Lacks = append(a.Lacks, "the key is a secret key, sk_…, that may also write; nothing here needs that: make a restricted key, rk_…, that may read the kinds that are asked for, and events")
		}
		all = append(all, a)
	}
	return all
}
