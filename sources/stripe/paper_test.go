package stripe

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// tables gives the tables of docs/stripe.md: the cells of each row, by kind.
func tables(t *testing.T) []map[string][]string {
	t.Helper()
	paper, err := os.ReadFile("../../docs/stripe.md")
	if err != nil {
		t.Fatal(err)
	}
	var list []map[string][]string
	for line := range strings.Lines(string(paper)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case strings.HasPrefix(line, "|---"):
			list = append(list, map[string][]string{})
		case strings.HasPrefix(line, "| `") && len(list) > 0 && cells[0] != "`effect:`":
			list[len(list)-1][strings.Trim(cells[0], "`")] = cells[1:]
		}
	}
	return list
}

func TestThePageTellsHowEachKindIsFound(t *testing.T) {
	t.Parallel()
	yes := map[bool]string{true: "yes", false: "no"}
	want := map[string][]string{}
	for name, k := range kinds {
		var parents []string
		for _, parameter := range k.filters {
			parents = append(parents, recon.Noun(parameter))
		}
		if parents == nil {
			parents = []string{"nothing"}
		}
		want[name] = []string{"yes", "yes", strings.Join(parents, ", "), yes[len(k.made) > 0], yes[k.search != nil]}
	}
	if diff := cmp.Diff(want, tables(t)[0]); diff != "" {
		t.Errorf("docs/stripe.md (-code +page):\n%s", diff)
	}
}

var quoted = regexp.MustCompile("`([a-z_]+)`")

func TestThePageTellsWhatTheStatusesMean(t *testing.T) {
	t.Parallel()
	columns := []recon.EffectStatus{recon.InFlight, recon.Completed, recon.EffectFailed, recon.Reversed}
	page := tables(t)[1]
	for name, k := range kinds {
		if len(page[name]) != 5 {
			t.Errorf("%s has %d cells, want 5", name, len(page[name]))
			continue
		}
		told := 0
		for i, want := range columns {
			cell := page[name][i]
			if strings.Contains(cell, " and ") || strings.Contains(cell, ", or ") {
				told++ // the status alone does not say it; tables of statuses hold these
				continue
			}
			for _, word := range quoted.FindAllStringSubmatch(cell, -1) {
				told++
				if got, ok := k.status(object{Status: word[1]}); !ok || got != want {
					t.Errorf("%s %s is %s (%t), the page says %s", name, word[1], got, ok, want)
				}
			}
		}
		if told == 0 && !slices.Contains([]string{kindCustomer, kindTransfer}, name) {
			t.Errorf("the page tells no status of %s", name)
		}
	}
}
