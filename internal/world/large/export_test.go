package large

import (
	"net/http"
	"slices"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/httpapi/httpapitest"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// CardFaults lists all that may befall what agents send to the card provider, and all that may
// befall what the product asks there.
func CardFaults() (sends, reads []stripetest.Fault) {
	for _, list := range sending {
		sends = append(sends, list...)
	}
	return sends, slices.Clone(reading)
}

// PlainFaults lists what befalls questions to the bank and the letter service in a world.
func PlainFaults(p *Plan) map[recon.SourceName][]httpapitest.Fault {
	list := map[recon.SourceName][]httpapitest.Fault{}
	for _, t := range p.troubles {
		f, _ := t.plainFault()
		switch t.kind {
		case bankDown:
			list[bank] = append(list[bank], f)
		case lettersDown:
			list[letters] = append(list[letters], f)
		}
	}
	return list
}

// Deaths lists how processes of the product die in a world: where, and at which moment.
func Deaths(p *Plan) (list []string) {
	for _, t := range p.troubles {
		if t.kind == death {
			in, e := deathOf(t.size)
			list = append(list, string(in)+" "+e.moment.String())
		}
	}
	return list
}

// EveryDeath lists how they can.
func EveryDeath() (list []string) {
	for _, r := range rooms {
		for m := beforeStatement; m <= atRequest; m++ {
			if m != atRequest || r.asks {
				list = append(list, string(r.room)+" "+m.String())
			}
		}
	}
	return list
}

// Patience is a way on which those requests are not waited for that the provider is to hold.
func Patience(holds func(*http.Request) bool) (http.RoundTripper, func(*http.Request)) {
	p := newPatience(http.DefaultTransport)
	return p, func(seen *http.Request) {
		if holds(seen) {
			p.giveUp(seen)
		}
	}
}
