package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

const (
	dashboardFile = "../grafana/dashboards/reconciler.json"
	dataSourceUID = "reconciler-prometheus"
)

func readDashboard(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// dashboardQueries are the queries of all panels, by title and letter.
func dashboardQueries(t *testing.T) map[string]string {
	t.Helper()
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ RefID, Expr string }
		}
	}
	if err := json.Unmarshal(readDashboard(t), &d); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for n, p := range d.Panels {
		for _, q := range p.Targets {
			all[d.Panels[n].Title+" "+q.RefID] = q.Expr
		}
	}
	return all
}

func TestTheDashboardIsTheOneThatIsBuilt(t *testing.T) {
	built, err := exec.CommandContext(t.Context(), "go", "run", "./dashboard").Output()
	if err != nil {
		t.Fatal(err)
	}
	if string(built) != string(readDashboard(t)) {
		t.Errorf("%s is old: run make generate", dashboardFile)
	}
}

func TestGrafanasLibraryReadsTheDashboard(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	if faults := strictly(t, readDashboard(t)); len(faults) > 0 {
		t.Errorf("%v", faults)
	}
	misspelt := strings.Replace(string(readDashboard(t)), `"gridPos"`, `"gridPosition"`, 1)
	if faults := strictly(t, []byte(misspelt)); len(faults) == 0 {
		t.Error("a misspelt key passes")
	}
}

// strictly reads a dashboard; the library's error is never nil, so its faults are counted.
func strictly(t *testing.T, text []byte) cog.BuildErrors {
	t.Helper()
	//lint:ignore SA1019 as it is built
	var d dashboard.Dashboard
	err := d.UnmarshalJSONStrict(text)
	var faults cog.BuildErrors
	if err != nil && !errors.As(err, &faults) {
		t.Fatal(err)
	}
	if err := d.Validate(); err != nil {
		var more cog.BuildErrors
		if !errors.As(err, &more) {
			t.Fatal(err)
		}
		faults = append(faults, more...)
	}
	return faults
}

func TestThePartsOfGrafanaNameEachOther(t *testing.T) {
	var sources struct {
		Datasources []struct{ UID, Type string }
	}
	text, err := os.ReadFile("../grafana/provisioning/datasources/reconciler.yml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &sources); err != nil {
		t.Fatal(err)
	}
	if len(sources.Datasources) != 1 || sources.Datasources[0].UID != dataSourceUID || sources.Datasources[0].Type != "prometheus" {
		t.Errorf("data sources %+v", sources)
	}
	var d struct {
		Panels []struct {
			ID         int
			Type       string
			Title      string
			Datasource struct{ UID string }
			GridPos    struct{ X, Y, W, H int }
		}
	}
	if err := json.Unmarshal(readDashboard(t), &d); err != nil {
		t.Fatal(err)
	}
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range d.Panels {
		if p.Type != "row" && p.Datasource.UID != dataSourceUID {
			t.Errorf("%s asks %q", p.Title, p.Datasource.UID)
		}
		if ids[p.ID] || p.ID == 0 {
			t.Errorf("%s has id %d", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("%s lies on %s", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}
