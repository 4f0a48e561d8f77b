package sqldb

// role is one thing that a column holds.
type role struct {
	name   string // of the setting
	column string
	type_  hold
	finds  string // of a witness: what of an operation is looked for in it
}

// hold is what a column's type must be able to hold.
type hold int

const (
	anyText hold = iota // shown as text
	instant             // a time
	amount              // a number that is exact
	flag                // a boolean, or the time of a deletion
	sought              // looked for by equality, so that an index serves
)

// roles gives the columns that are there.
func (c ColumnSettings) roles() []role {
	return present([]role{
		{"id", c.ID, sought, ""}, {"created_at", c.CreatedAt, instant, ""}, {"updated_at", c.UpdatedAt, instant, ""},
		{"status", c.Status, anyText, ""}, {"deleted", c.Deleted, flag, ""}, {"amount", c.Amount, amount, ""}, {"currency", c.Currency, anyText, ""},
		{"parent", c.Parent, sought, ""}, {"target", c.Target, anyText, ""}, {"reference", c.Reference, sought, ""}, {"key", c.Key, sought, ""},
		{"natural_reference", c.Natural, anyText, ""}, {"account", c.Account, anyText, ""}, {"mode", c.Mode, anyText, ""},
		{"failure_reason", c.FailureReason, anyText, ""}, {"created_by", c.CreatedBy, anyText, ""},
	})
}

// roles gives the columns that are there.
func (c WitnessColumnSettings) roles() []role {
	return present([]role{
		{"target", c.Target, sought, "target"}, {"reference", c.Reference, sought, "reference"}, {"key", c.Key, sought, "key"}, {"parent", c.Parent, sought, "parent"},
		{"status", c.Status, anyText, ""}, {"amount", c.Amount, amount, ""}, {"currency", c.Currency, anyText, ""},
	})
}

func present(all []role) []role {
	var list []role
	for _, r := range all {
		if r.column != "" {
			list = append(list, r)
		}
	}
	return list
}
