package main

import (
	"encoding/json"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// DatasourceUID is that of the provisioned data source.
const DatasourceUID = "reconciler-prometheus"

// Sizes on Grafana's grid of 24 columns.
const (
	numberWidth, numberHeight = 6, 4
	chartWidth, chartHeight   = 8, 8
)

func source() common.DataSourceRef {
	return common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr(DatasourceUID)}
}

// JSON is the dashboard as Grafana reads it.
func JSON() ([]byte, error) {
	//lint:ignore SA1019 what comes after it is read by the newest Grafana only
	b := dashboard.NewDashboardBuilder("reconciler").
		Uid("reconciler").
		Description("What is unknown, what became of it, and whether anybody looks.").
		Tags([]string{"reconciler"}).
		Timezone("browser").
		Readonly().
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Refresh("30s").
		Time("now-6h", "now").
		WithVariable(dashboard.NewQueryVariableBuilder("job").
			Label("Installation").
			Query(dashboard.StringOrMap{String: cog.ToPtr("label_values(reconciler_ledger_snapshot_timestamp_seconds, job)")}).
			Datasource(source()).
			Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
			Multi(true).IncludeAll(true).AllValue(".*"))
	id := uint32(0)
	for _, s := range sections {
		id++
		b = b.WithRow(dashboard.NewRowBuilder(s.title).Id(id))
		for _, v := range s.views {
			id++
			b = b.WithPanel(v.panel(id))
		}
	}
	d, err := b.Build()
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(d, "", "  ")
	return append(text, '\n'), err
}

func (v view) panel(id uint32) cog.Builder[dashboard.Panel] {
	switch v.form {
	case number:
		return v.number().Id(id)
	case heat:
		return v.heat().Id(id)
	}
	return v.chart().Id(id)
}

func (v view) targets() []cog.Builder[variants.Dataquery] {
	var all []cog.Builder[variants.Dataquery]
	for i, q := range v.queries {
		t := prometheus.NewDataqueryBuilder().Expr(q.expr).LegendFormat(q.legend).RefId(string(rune('A' + i))).Datasource(source())
		switch v.form {
		case number:
			t = t.Instant()
		case heat:
			t = t.Range().Format(prometheus.PromQueryFormatHeatmap)
		default:
			t = t.Range()
		}
		all = append(all, t)
	}
	return all
}

func (v view) number() *stat.PanelBuilder {
	steps := []dashboard.Threshold{{Color: "green"}}
	if v.red > 0 {
		steps = append(steps, dashboard.Threshold{Color: "red", Value: cog.ToPtr(v.red)})
	}
	return stat.NewPanelBuilder().Title(v.title).Description(v.about).Datasource(source()).
		Span(numberWidth).Height(numberHeight).Unit(v.unit).Targets(v.targets()).
		Thresholds(dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"})).
		ColorMode(common.BigValueColorModeValue).GraphMode(common.BigValueGraphModeNone)
}

func (v view) heat() *heatmap.PanelBuilder {
	return heatmap.NewPanelBuilder().Title(v.title).Description(v.about).Datasource(source()).
		Span(chartWidth).Height(chartHeight).Targets(v.targets()).
		YAxis(heatmap.NewYAxisConfigBuilder().Unit(v.unit))
}

func (v view) chart() *timeseries.PanelBuilder {
	p := timeseries.NewPanelBuilder().Title(v.title).Description(v.about).Datasource(source()).
		Span(chartWidth).Height(chartHeight).Unit(v.unit).Min(0).Targets(v.targets()).
		Legend(common.NewVizLegendOptionsBuilder().DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).ShowLegend(true))
	if v.form == stacked {
		p = p.FillOpacity(30).Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal))
	}
	return p
}
