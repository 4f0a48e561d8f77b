package world

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// The world's calendar. Two simulated days of agents at work, and the hours after
// them in which the last truths come out.
const (
	workHours  = 36 * time.Hour
	worldHours = 48 * time.Hour

	outageStart = 20 * time.Hour
	outageEnd   = 22 * time.Hour
)

// epoch is when every simulated world begins: a Monday morning.
var epoch = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

// intent is one refund that the shop's agent means to make.
type intent struct {
	id     recon.OperationID
	action string
	order  string
	charge string
	money  recon.Money
	at     time.Time
	fate   fate
}

// key is what the agent stores and sends; it follows from case and step in the
// ledger, but the world must know it beforehand to script the provider's faults.
func (i intent) caseID() string { return "case-" + i.order }

var currencies = []struct {
	code string
	unit int64 // the smallest amount that is refunded
}{{"EUR", 100}, {"USD", 100}, {"GBP", 100}, {"JPY", 100}, {"KWD", 1000}}

// draw makes the intents of a world from its seed: the same seed and number, the same
// intents. Rare fates come first, so that even a small world has some of each.
func draw(seed uint64, operations int) []intent {
	rng := rand.New(rand.NewPCG(seed, 0x7265636f6e))
	drawn := deal(rng, operations)
	intents := make([]intent, operations)
	for n := range intents {
		f := drawn[n]
		at := moment(rng, f)
		if !at.Before(epoch.Add(outageStart)) && at.Before(epoch.Add(outageEnd)) {
			f = duringOutage(at)
		}
		c := currencies[rng.IntN(len(currencies))]
		order := fmt.Sprintf("%d", 4000+n)
		intents[n] = intent{
			id:     recon.OperationID(fmt.Sprintf("op_%d_%04d", seed, n)),
			action: or(f.action, refundCreate),
			order:  order,
			charge: fmt.Sprintf("ch_%d_%04d", seed, n),
			money:  recon.Money{Minor: c.unit + rng.Int64N(400)*10, Currency: c.code},
			at:     at,
			fate:   f,
		}
	}
	slices.SortStableFunc(intents, func(a, b intent) int { return a.at.Compare(b.at) })
	return intents
}

// deal gives each intent a fate by the table's weights: whole shares exactly, the
// broken rest by chance.
func deal(rng *rand.Rand, operations int) []fate {
	drawn := make([]fate, 0, operations)
	for _, f := range fates {
		share := operations * f.weight
		count := share / 100
		if rng.IntN(100) < share%100 {
			count++
		}
		for range count {
			if len(drawn) < operations {
				drawn = append(drawn, f)
			}
		}
	}
	for len(drawn) < operations {
		drawn = append(drawn, plain)
	}
	rng.Shuffle(len(drawn), func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
	return drawn
}

// moment draws when an intent is opened. What goes wrong with it must not run into
// the outage, whose own findings would then depend on minutes, so that only what
// ends within the hour is opened in the hours before it; and its truth must come out
// before the world ends.
func moment(rng *rand.Rand, f fate) time.Time {
	for {
		at := rng.Int64N(int64(workHours / time.Second))
		offset := time.Duration(at) * time.Second
		latest := worldHours - max(f.latest, 4*time.Hour)
		switch {
		case offset > latest:
		case offset >= outageEnd-30*time.Minute && offset < outageEnd+5*time.Minute:
			// Too late for its question to be a quarter of an hour old.
		case f.name != plain.name && offset < outageEnd && offset+max(f.settles(), time.Hour) > outageStart:
		default:
			return epoch.Add(offset)
		}
	}
}

// settles is how long after opening the ledger may still be asking.
func (f fate) settles() time.Duration {
	if len(f.findings) > 0 || len(f.life) > 0 || f.action == refundGoodwill {
		return 9 * time.Hour
	}
	return 30 * time.Minute
}

// duringOutage is the fate of an intent that is opened while the provider is down. Its
// sender comes back when the ledger has asked again, still not known, and told people.
func duringOutage(at time.Time) fate {
	f := outage
	back := epoch.Add(outageEnd + 30*time.Minute).Sub(at)
	f.steps = []step{soon, {after: back}}
	return f
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
