package stripetest

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/big"
)

// idLength is the length of the part after the prefix, as the provider's.
const idLength = 24

// idMaker makes ids from the seed, what they are made for, and how many were made
// for that before: the interleaving of concurrent requests with keys of their own
// does not change them.
type idMaker struct {
	seed uint64
	made map[string]int
}

func newIDMaker(seed uint64) idMaker { return idMaker{seed: seed, made: map[string]int{}} }

// next gives a new id with the prefix, such as "re_".
func (m idMaker) next(prefix, origin string) string {
	label := prefix + "\x00" + origin
	m.made[label]++
	sum := m.hash(label, m.made[label])
	text := new(big.Int).SetBytes(sum[:]).Text(62)
	return prefix + text[:idLength]
}

// requestID gives the id of a new request, which is shorter than an object's.
func (s *Server) requestID() string { return s.ids.next("req_", "")[:len("req_")+14] }

// chance reports whether an event of this probability happens for the n-th time of label.
func (m idMaker) chance(probability float64, label string, n int) bool {
	sum := m.hash("chance\x00"+label, n)
	return float64(binary.BigEndian.Uint64(sum[:8])>>11)/(1<<53) < probability
}

func (m idMaker) hash(label string, n int) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%d\x00%s\x00%d", m.seed, label, n))
}
