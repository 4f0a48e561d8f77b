package ledger

import (
	"encoding/binary"
	"io"

	"github.com/jackc/pgx/v5/pgproto3"
)

const (
	// waitRoutine is where in PostgreSQL a commit waits for its synchronous standby. Reports of
	// the server name it whatever their language. It reports one thing: that the wait was ended,
	// by a cancel or the end of the connection, when the commit had been made.
	waitRoutine = "SyncRepWaitForLSN"

	replyHeader  = 5       // bytes: a letter and the length of what follows the letter
	mostOfNotice = 8 << 10 // bytes; the one that matters is much shorter
)

// buildFrontend reads a server's replies through [replies].
func buildFrontend(r io.Reader, w io.Writer) *pgproto3.Frontend {
	return pgproto3.NewFrontend(&replies{from: r}, w)
}

// replies are what a server answers, in which one notice is an error: that the wait for the
// synchronous standby was ended. PostgreSQL says so in passing and answers as if all were well,
// so that an intent would count as recorded that a lost machine takes with it. A notice and an
// error differ in their first letter, and the driver gives every error that comes before the
// end of a statement, or of a commit, to whoever waits for it; so no call can forget to look.
type replies struct {
	from io.Reader
	read []byte // what was read and not passed on
	fit  int    // how much of it may be passed on
	rest int64  // how much is still to come of the reply that was judged last
	err  error  // with which the reading ended, once all before is passed on
}

// Read passes on what may be.
func (r *replies) Read(p []byte) (int, error) {
	for r.fit == 0 {
		if err := r.err; err != nil {
			r.err = nil // one of a deadline is over with it
			return 0, err
		}
		n, err := r.from.Read(p)
		if n == 0 {
			return 0, err
		}
		r.read, r.err = append(r.read, p[:n]...), err
		r.fit = r.judge(r.read)
	}
	n := copy(p, r.read[:r.fit])
	r.read, r.fit = append(r.read[:0], r.read[n:]...), r.fit-n
	return n, nil
}

// judge says how many bytes of b, which begins where it left off, may be passed on: all but
// the beginning of a reply that cannot be judged yet.
func (r *replies) judge(b []byte) int {
	for passed := 0; ; {
		skip := min(r.rest, int64(len(b)-passed))
		passed, r.rest = passed+int(skip), r.rest-skip
		reply := b[passed:]
		if len(reply) < replyHeader {
			return passed
		}
		size := 1 + int64(binary.BigEndian.Uint32(reply[1:]))
		if reply[0] == 'N' && size <= mostOfNotice {
			if int64(len(reply)) < size {
				return passed
			}
			if tellsOfEndedWait(reply[replyHeader:size]) {
				reply[0] = 'E'
			}
		}
		r.rest = size
	}
}

// tellsOfEndedWait reads the fields of a notice.
func tellsOfEndedWait(fields []byte) bool {
	var n pgproto3.NoticeResponse
	return n.Decode(fields) == nil && n.Routine == waitRoutine
}
