package recon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFileOfASecretThatDoesNotServeSaysWhyAndWhatToDo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, tt := range map[string]struct {
		file   string
		denied bool // whoever asks may not read it; a superuser may read everything
		want   string
		says   []string
	}{
		"it serves":   {put("good", " the-secret\n"), false, "the-secret", nil},
		"empty":       {put("empty", " \n"), false, "", []string{"is empty", "write the bot token into it"}},
		"not there":   {filepath.Join(dir, "none"), false, "", []string{"no such file", "create it with the bot token"}},
		"a folder":    {dir, false, "", []string{"is a directory", "name a file that holds the bot token"}},
		"not allowed": {put("closed", "the-secret"), true, "", []string{"permission denied", "let the user that runs this read it"}},
	} {
		read := os.ReadFile
		if tt.denied {
			read = func(name string) ([]byte, error) {
				return nil, &os.PathError{Op: "open", Path: name, Err: os.ErrPermission}
			}
		}
		var got Secret
		faults := got.ReadFile("token_file", tt.file, "the bot token", read)
		if got.Reveal() != tt.want || (len(faults) == 0) != (tt.says == nil) {
			t.Errorf("%s: %q, %v", name, got.Reveal(), faults)
			continue
		}
		for _, words := range tt.says {
			if f := faults[0]; f.Path != "token_file" || !strings.Contains(f.Problem, words) || strings.Count(f.Problem, tt.file) != 1 {
				t.Errorf("%s: %v does not say %q, or not once where", name, f, words)
			}
		}
	}
	kept := NewSecret("from the environment")
	if faults := kept.ReadFile("token_file", "", "the bot token", func(string) ([]byte, error) { return nil, errors.New("asked") }); faults != nil || kept.Reveal() != "from the environment" {
		t.Errorf("without a file: %q, %v", kept.Reveal(), faults)
	}
}
