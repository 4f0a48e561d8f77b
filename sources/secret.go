package sources

import (
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// ReadSecret fills a secret with what a file holds, without the white space around it, and
// tells a file that cannot be read or is empty at its key. Without a file it does nothing.
func ReadSecret(key, file string, into *recon.Secret, read func(name string) ([]byte, error)) []recon.Fault {
	if file == "" {
		return nil
	}
	b, err := read(file)
	text := strings.TrimSpace(string(b))
	*into = recon.NewSecret(text)
	switch {
	case err != nil:
		return []recon.Fault{{Path: key, Problem: "cannot read " + file + "; create it with the secret as its only content"}}
	case text == "":
		return []recon.Fault{{Path: key, Problem: file + " is empty; write the secret into it"}}
	}
	return nil
}
