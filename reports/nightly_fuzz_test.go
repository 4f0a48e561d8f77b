package reports

import (
	"bytes"
	"strings"
	"testing"
)

// FuzzNightly holds that whatever was kept as a report is refused, or is a report that
// renders and reads back as it is.
func FuzzNightly(f *testing.F) {
	var sample bytes.Buffer
	if err := NightlyJSON(&sample, sampleNight(f)); err != nil {
		f.Fatal(err)
	}
	f.Add(sample.Bytes())
	f.Add([]byte(`{"format":1}`))
	f.Add([]byte(`{"format":1,"operations":[{"currency":null,"all":{"count":1,"amount":null}}],"findings":[{"money":null}]}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, text []byte) {
		n, err := ReadNightly(text)
		if err != nil {
			if len(err.Error()) > 1000 {
				t.Errorf("%d bytes of words", len(err.Error()))
			}
			return
		}
		files, err := NightlyFiles(n)
		if err != nil {
			return
		}
		for _, file := range files {
			if strings.ContainsAny(file.Name, "/\\\x00") {
				t.Errorf("a file outside of its folder: %q", file.Name)
			}
		}
		var once, twice bytes.Buffer
		if err := NightlyJSON(&once, n); err != nil {
			t.Fatal(err)
		}
		again, err := ReadNightly(once.Bytes())
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if err := NightlyJSON(&twice, again); err != nil || !bytes.Equal(once.Bytes(), twice.Bytes()) {
			t.Errorf("written again it is another document (%v):\n%s\n%s", err, &once, &twice)
		}
	})
}
