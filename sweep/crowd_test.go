package sweep

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// The list that finds the crowd of an outage ends in its time. An effect that was made
// after that end is not silence for the next batch: it is asked for.
func TestAListOfThePastAnswersForNothingMadeAfterIt(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	const n = 100
	s.sweep.batch = n
	for i := range n {
		s.happen(refund(i), s.lose(refund(i)))
	}
	s.pass(time.Second)
	late := refund(n)
	key := s.lose(late)
	s.pass(time.Minute)
	s.happen(late, key)
	s.pass(3 * time.Hour)
	out := s.run()
	if out.Succeeded != n+1 || out.ProviderCalls > 5 {
		t.Errorf("%+v", out)
	}
	s.wantState(late, recon.Succeeded)
}

// What was taken from the shelf is not kept under words that nobody asks for.
func TestTheShelfKeepsNothingOfWhatWasTaken(t *testing.T) {
	t.Parallel()
	shelf := newShelf()
	const batches = 20
	most := 0
	for b := range batches {
		var answer sources.Answer
		var cases []recon.Case
		for i := range defaultBatch {
			id := fmt.Sprintf("%d-%d", b, i)
			answer.Effects = append(answer.Effects, recon.Effect{
				ID: "re_" + id, Kind: "refund", Account: testAccount, Mode: "live", Parent: "ch_" + id, Reference: "op_" + id, Key: "k_" + id,
				Money: recon.Money{Minor: 100, Currency: "EUR"}, CreatedAt: monday,
			})
			cases = append(cases, recon.Case{Operation: recon.Operation{ID: recon.OperationID("op_" + id), Account: testAccount, Mode: "live"}})
		}
		shelf.put(answer, nil)
		if got := len(shelf.take(cases).effects); got != defaultBatch {
			t.Fatalf("batch %d took %d effects", b, got)
		}
		most = max(most, len(shelf.words))
	}
	if perEffect := 8; most > 3*defaultBatch*perEffect || len(shelf.effects) != 0 {
		t.Errorf("%d words were kept at once, and %d effects at the end", most, len(shelf.effects))
	}
}
