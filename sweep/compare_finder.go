package sweep

// finder finds rows by a hash of 64 bits, of which 0 is none. A place holds half of the
// hash, so that nearly every wrong row is passed over without being looked at.
type finder struct {
	places []place
	hash   func(row int32) uint64
}

type place struct {
	half uint32
	row  int32 // + 1
}

// newFinder makes a finder that takes n rows.
func newFinder(n int, hash func(row int32) uint64) *finder {
	return &finder{places: make([]place, powerAbove(n*2)), hash: hash}
}

// powerAbove gives a power of two that is not below n.
func powerAbove(n int) int {
	size := 16
	for size < n {
		size *= 2
	}
	return size
}

// put adds a row unless there is one with its hash, and gives that one, else -1.
func (f *finder) put(row int32) int32 {
	h := f.hash(row)
	at, was := f.seek(h)
	if was < 0 {
		f.places[at] = place{uint32(h >> 32), row + 1}
	}
	return was
}

// find gives the first row with a hash, or -1.
func (f *finder) find(h uint64) int32 {
	if h == 0 {
		return -1
	}
	_, row := f.seek(h)
	return row
}

// seek gives the row with a hash, or -1 and the place where it belongs.
func (f *finder) seek(h uint64) (at uint64, row int32) {
	mask, half := uint64(len(f.places)-1), uint32(h>>32)
	for at = h >> 1 & mask; ; at = (at + 1) & mask {
		switch p := f.places[at]; {
		case p.row == 0:
			return at, -1
		case p.half == half && f.hash(p.row-1) == h:
			return at, p.row - 1
		}
	}
}

// hashes remembers hashes by a bit each. It knows of those that it has not met, and takes a
// few of them for met; 0 is never met.
type hashes []uint64

// newHashes makes room for n hashes: with 16 bits for each it errs at one in 16.
func newHashes(n int) hashes { return make(hashes, powerAbove(n)/4) }

func (s hashes) bit(h uint64) (at int, bit uint64) {
	return int(h >> 7 & uint64(len(s)-1)), 1 << (h >> 1 & 63)
}

// add reports whether a hash is taken for met, and meets it.
func (s hashes) add(h uint64) bool {
	at, bit := s.bit(h)
	was := s[at]&bit != 0
	s[at] |= bit
	return was
}

func (s hashes) has(h uint64) bool {
	at, bit := s.bit(h)
	return h != 0 && s[at]&bit != 0
}

// sharing gives the rows that have the hash of another one, some more than once. Most hashes
// are of one row, and a bit shows it.
func sharing(n int, hash func(row int32) uint64) (shared []int32) {
	met, again := newHashes(n), newHashes(n)
	for row := range int32(n) {
		if h := hash(row); h != 0 && met.add(h) {
			again.add(h)
		}
	}
	rows := having(again, n, hash)
	f := newFinder(len(rows), hash)
	for _, row := range rows {
		if was := f.put(row); was >= 0 {
			shared = append(shared, was, row)
		}
	}
	return shared
}

// having gives the rows of which the hash is taken for met.
func having(met hashes, n int, hash func(row int32) uint64) (rows []int32) {
	for row := range int32(n) {
		if met.has(hash(row)) {
			rows = append(rows, row)
		}
	}
	return rows
}
