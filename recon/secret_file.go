package recon

import (
	"errors"
	"io/fs"
	"strings"
)

// ReadFile fills a secret with what a file holds, without the white space around it. A file
// that cannot be read or is empty is a fault at the key that names it, which says why and what to
// do. what says what belongs into the file: "the bot token". Without a file it does nothing.
func (s *Secret) ReadFile(key, file, what string, read func(name string) ([]byte, error)) []Fault {
	if file == "" {
		return nil
	}
	b, err := read(file)
	*s = NewSecret(strings.TrimSpace(string(b)))
	switch {
	case err != nil:
		return []Fault{{Path: key, Problem: unreadable(file, what, err)}}
	case s.IsZero():
		return []Fault{{Path: key, Problem: file + " is empty; write " + what + " into it"}}
	}
	return nil
}

// unreadable says why a file cannot be read and what to do, by the reason: one that is there
// and may not be read is not to be created.
func unreadable(file, what string, err error) string {
	next := "name a file that holds " + what + " and nothing else"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		next = "create it with " + what + " as its only content"
	case errors.Is(err, fs.ErrPermission):
		next = "let the user that runs this read it"
	}
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err // which does not repeat the name
	}
	return "cannot read " + file + ": " + err.Error() + "; " + next
}
