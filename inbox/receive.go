package inbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Delivery is one arrival of an event.
type Delivery struct {
	Event recon.Event
	At    time.Time
	// Foreign says that the account or mode is none of the source's: the event is kept
	// and never taken in.
	Foreign bool
	// Fetched says that it was read from the provider's list of events and not delivered.
	Fetched bool
}

// Receipt says what became of a delivery.
type Receipt string

const (
	Stored   Receipt = "stored"   // it was not known
	Repeated Receipt = "repeated" // it was, and was counted once more
)

// receiveSQL is one transaction, which waits for the disk where the database is set to
// answer earlier.
const receiveSQL = `
SELECT blob_id
FROM reconciler.receive_events($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) AS blob_id`

// Receive stores deliveries, all or none, in one round trip. When it returns without an
// error they survive the death of this process and of the server. The receipts are in
// the order of the deliveries. Every event must pass [Check].
func (s *Store) Receive(ctx context.Context, list ...Delivery) ([]Receipt, error) {
	if len(list) == 0 {
		return nil, nil
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, rowOf, err := arrange(list)
	if err != nil {
		return nil, err
	}
	fresh, err := s.write(ctx, rows)
	if err != nil {
		return nil, s.fault("store events", err)
	}
	receipts := make([]Receipt, len(list))
	for i := range list {
		receipts[i] = Repeated
		if n := rowOf[i]; fresh[rows[n].blobID] { // the first of its kind is the new one
			receipts[i] = Stored
			delete(fresh, rows[n].blobID)
		}
	}
	return receipts, nil
}

// row is one event to be stored, with the deliveries of it that came together.
type row struct {
	Delivery
	deliveries int
	blobID     string
	salt       []byte
	hash       [sha256.Size]byte
}

// arrange makes one row an event, in the order of names, so that two writers wait for
// each other instead of deadlocking, and says which row each delivery went to.
func arrange(list []Delivery) (rows []*row, rowOf []int, err error) {
	at := make(map[Name]*row, len(list))
	for _, d := range list {
		r := at[NameOf(d.Event)]
		switch {
		case r == nil:
			if r, err = newRow(d); err != nil {
				return nil, nil, err
			}
			at[NameOf(d.Event)] = r
			rows = append(rows, r)
		case d.Event.Signed && !r.Event.Signed: // as where the forged one was stored before
			signed, err := newRow(d)
			if err != nil {
				return nil, nil, err
			}
			signed.deliveries = r.deliveries
			*r = *signed
		}
		if !d.Fetched {
			r.deliveries++
		}
	}
	slices.SortFunc(rows, func(a, b *row) int { return compareNames(NameOf(a.Event), NameOf(b.Event)) })
	place := make(map[*row]int, len(rows))
	for i, r := range rows {
		place[r] = i
	}
	for _, d := range list {
		rowOf = append(rowOf, place[at[NameOf(d.Event)]])
	}
	return rows, rowOf, nil
}

func newRow(d Delivery) (*row, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	r := &row{Delivery: d, blobID: id.String(), salt: make([]byte, 16)}
	rand.Read(r.salt)
	sum := sha256.New()
	sum.Write(r.salt)
	sum.Write(d.Event.Body)
	sum.Sum(r.hash[:0])
	return r, nil
}

func compareNames(a, b Name) int {
	return cmp.Or(cmp.Compare(a.System, b.System), cmp.Compare(a.Account, b.Account), cmp.Compare(a.Mode, b.Mode), cmp.Compare(a.ID, b.ID))
}

// write stores the rows and says which of their bytes were taken.
func (s *Store) write(ctx context.Context, rows []*row) (fresh map[string]bool, err error) {
	n := len(rows)
	var texts [8][]string
	for i := range texts {
		texts[i] = make([]string, 0, n)
	}
	add := func(column int, v string) { texts[column] = append(texts[column], v) }
	signed, deliveries := make([]bool, 0, n), make([]int32, 0, n)
	created, received := make([]time.Time, 0, n), make([]time.Time, 0, n)
	salts, bytes, hashes := make([][]byte, 0, n), make([][]byte, 0, n), make([][]byte, 0, n)
	for _, r := range rows {
		e, state := r.Event, New
		if r.Foreign {
			state = Ignored
		}
		for column, v := range []string{e.System, e.Account, e.Mode, e.ID, string(e.Source), e.Type, string(state), r.blobID} {
			add(column, v)
		}
		signed, deliveries = append(signed, e.Signed), append(deliveries, int32(r.deliveries))
		created, received = append(created, stored(e.CreatedAt)), append(received, stored(r.At))
		salts, bytes, hashes = append(salts, r.salt), append(bytes, e.Body), append(hashes, r.hash[:])
	}
	found, err := s.pool.Query(ctx, receiveSQL, s.tenant, texts[0], texts[1], texts[2], texts[3], texts[4], texts[5], texts[6], texts[7],
		signed, deliveries, created, received, hashes, salts, bytes)
	if err != nil {
		return nil, err
	}
	taken, err := pgx.CollectRows(found, pgx.RowTo[string]) // which returns after the commit
	fresh = make(map[string]bool, len(taken))
	for _, blob := range taken {
		fresh[blob] = true
	}
	return fresh, err
}
