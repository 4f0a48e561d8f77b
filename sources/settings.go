package sources

// Fault is one thing that is wrong with a source's settings: where, and what to write
// instead. Settings report all of theirs at once.
type Fault struct {
	Path    string // the key inside settings, such as accounts[1].mode
	Problem string
}

func (f Fault) Error() string {
	if f.Path == "" {
		return f.Problem
	}
	return f.Path + ": " + f.Problem
}
