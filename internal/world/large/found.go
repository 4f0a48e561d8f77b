package large

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Found is the part of a world in which something went wrong, as a test keeps it: a fault of
// the product is found once.
type Found struct {
	What       string // went wrong
	Seed       uint64
	Operations int
	// Intents and Troubles are the numbers of those that are left.
	Intents, Troubles []int
	// Digest is that of the plan when it was found.
	Digest string
}

// Keep makes a test's case of what is left of a plan.
func Keep(what string, p *Plan) Found {
	intents, troubles := p.Parts()
	return Found{What: what, Seed: p.Seed, Operations: p.Operations, Intents: intents, Troubles: troubles, Digest: p.Digest()}
}

// Plan draws the plan again. It is an error if the seed means something else by now.
func (f Found) Plan() (*Plan, error) {
	p := Draw(f.Seed, f.Operations).Only(list(f.Intents), list(f.Troubles))
	if d := p.Digest(); d != f.Digest {
		return nil, fmt.Errorf("seed %d of %d operations (%s) is another world than the one that was found: its digest is %s, not %s; "+
			"undo the product's mending, look for a seed that goes wrong in the same way (go run ./internal/world/soak), and keep that one instead",
			f.Seed, f.Operations, f.What, d, f.Digest)
	}
	return p, nil
}

// list is never nil, which would mean all.
func list(numbers []int) []int { return append([]int{}, numbers...) }

// String is the case as Go text, to be pasted into the table of found worlds.
func (f Found) String() string {
	return fmt.Sprintf("{\n\tWhat: %q,\n\tSeed: %d, Operations: %d, Intents: %#v, Troubles: %#v,\n\tDigest: %q,\n},", f.What, f.Seed, f.Operations, list(f.Intents), list(f.Troubles), f.Digest)
}

// Digest tells plans apart by all that is drawn, in 16 hexadecimal digits.
func (p *Plan) Digest() string {
	all := sha256.Sum256(fmt.Appendf(nil, "%+v\n%+v\n%+v", p.nature, p.troubles, p.intents))
	return hex.EncodeToString(all[:8])
}

// Check is the name of the check that says that something is wrong.
func Check(wrong string) string {
	name, _, _ := strings.Cut(wrong, ": ")
	return name
}
