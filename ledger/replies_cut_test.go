package ledger

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// chunks gives a stream in pieces of one size, and then an error.
type chunks struct {
	all  []byte
	size int
	end  error
}

func (c *chunks) Read(p []byte) (int, error) {
	n := copy(p, c.all[:min(c.size, len(c.all))])
	c.all = c.all[n:]
	if len(c.all) == 0 {
		return n, c.end // beside the last bytes, as a reader may
	}
	return n, nil
}

// Wherever the network cuts the replies, one notice is an error and everything else is what it was.
func TestRepliesPassUnchangedButForTheEndedWait(t *testing.T) {
	t.Parallel()
	notice := func(routine, detail string) []byte {
		b, err := (&pgproto3.NoticeResponse{Severity: "WARNUNG", SeverityUnlocalized: "WARNING", Code: "01000", Detail: detail, Routine: routine}).Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	reply := func(m pgproto3.BackendMessage) []byte {
		b, err := m.Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	row := reply(&pgproto3.DataRow{Values: [][]byte{bytes.Repeat([]byte("N"), 300), notice(waitRoutine, "")}}) // looks like one, and is none
	before := joined(row, notice("exec_stmt_raise", "a note of ours"), notice(waitRoutine, strings.Repeat("x", mostOfNotice)),
		reply(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")}))
	ended := notice(waitRoutine, "The transaction has already committed locally.")
	after := joined(reply(&pgproto3.ReadyForQuery{TxStatus: 'I'}), row[:9]) // the connection broke
	sent := joined(before, ended, after)
	want := bytes.Clone(sent)
	want[len(before)] = 'E'
	broken := errors.New("broken")
	for size := 1; size < 700; size += 1 + size/16 {
		for _, room := range []int{1, 7, 8192} {
			got, err := readBy(&replies{from: &chunks{bytes.Clone(sent), size, broken}}, room)
			if !errors.Is(err, broken) || !bytes.Equal(got, want) {
				t.Fatalf("pieces of %d read by %d: %v, %d bytes of %d are other ones", size, room, err, differing(got, want), len(want))
			}
		}
	}
}

func joined(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// readBy reads to the end, room bytes at most at a time.
func readBy(r io.Reader, room int) (all []byte, err error) {
	for p := make([]byte, room); ; {
		n, err := r.Read(p)
		all = append(all, p[:n]...)
		if err != nil {
			return all, err
		}
	}
}

func differing(a, b []byte) (n int) {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			n++
		}
	}
	return n + max(len(a), len(b)) - min(len(a), len(b))
}
