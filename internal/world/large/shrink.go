package large

import "slices"

// Shrink makes a failing plan small: it gives the numbers of intents and troubles that are
// left when nothing more can be taken away without the failure going away too.
func Shrink(p *Plan, fails func(*Plan) bool) (intents, troubles []int) {
	intents, troubles = p.Parts()
	troubles = fewer(troubles, func(some []int) bool { return fails(p.Only(intents, some)) })
	intents = fewer(intents, func(some []int) bool { return fails(p.Only(some, troubles)) })
	return intents, troubles
}

// fewer takes ever smaller pieces away from a list for as long as what is left still fails.
func fewer(list []int, fails func([]int) bool) []int {
	for size := (len(list) + 1) / 2; size > 0; {
		taken := false
		for from := 0; from < len(list); {
			to := min(from+size, len(list))
			rest := append(slices.Clone(list[:from]), list[to:]...) // never nil, which would mean all
			if fails(rest) {
				list, taken = rest, true
			} else {
				from = to
			}
		}
		switch {
		case size > 1:
			size = (size + 1) / 2
		case !taken:
			return list
		}
	}
	return list
}
