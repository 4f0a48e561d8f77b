package ledger

import (
	"fmt"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// OneCurrency holds the operations of one reading to a law of groups: a group has one
// currency, for in several there is no sum that an effect could be held against. The zero
// value has seen none.
type OneCurrency struct {
	first map[groupName]groupLine
}

type groupName struct {
	source              recon.SourceName
	account, mode, name string
}

type groupLine struct {
	currency string
	line     int
}

// Check gives an error where an operation's group is in another currency on a line before
// this one, and says which.
func (c *OneCurrency) Check(o *recon.Operation, line int) error {
	if o.Group == "" || o.Money.IsZero() {
		return nil
	}
	g := groupName{o.Source, o.Account, o.Mode, o.Group}
	was, seen := c.first[g]
	if !seen {
		if c.first == nil {
			c.first = map[groupName]groupLine{}
		}
		c.first[g] = groupLine{o.Money.Currency, line}
		return nil
	}
	if was.currency == o.Money.Currency {
		return nil
	}
	return fmt.Errorf("operation %s is in %s and its group %s in %s on line %d; a group has one currency, so correct it or take the operation out of the group",
		o.ID, o.Money.Currency, o.Group, was.currency, was.line)
}
