package main

// The part of Grafana's dashboard model that is used here. The names are Grafana's.

type dashboard struct {
	UID           string      `json:"uid"`
	Title         string      `json:"title"`
	Description   string      `json:"description"`
	Tags          []string    `json:"tags"`
	Timezone      string      `json:"timezone"`
	Editable      bool        `json:"editable"`
	GraphTooltip  int         `json:"graphTooltip"` // 1: a crosshair in all panels
	Time          timeRange   `json:"time"`
	Refresh       string      `json:"refresh"`
	SchemaVersion int         `json:"schemaVersion"`
	Version       int         `json:"version"`
	Templating    templating  `json:"templating"`
	Annotations   annotations `json:"annotations"`
	Links         []struct{}  `json:"links"`
	Panels        []panel     `json:"panels"`
}

type timeRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type templating struct {
	List []variable `json:"list"`
}

type annotations struct {
	List []struct{} `json:"list"`
}

// A variable of the type datasource lets the reader choose the Prometheus.
type variable struct {
	Name  string `json:"name"`
	Label string `json:"label"`
	Type  string `json:"type"`
	Query string `json:"query"`
	Hide  int    `json:"hide"`
}

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type panel struct {
	ID          int            `json:"id"`
	Title       string         `json:"title"`
	Description string         `json:"description,omitempty"`
	Type        string         `json:"type"`
	Datasource  datasource     `json:"datasource"`
	GridPos     gridPos        `json:"gridPos"`
	Targets     []target       `json:"targets"`
	FieldConfig fieldConfig    `json:"fieldConfig"`
	Options     map[string]any `json:"options"`
	Transform   []transform    `json:"transformations,omitempty"`
}

// gridPos is in units of a 24th of the width, and of 30 pixels.
type gridPos struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

// A target is a query to Prometheus.
type target struct {
	RefID        string     `json:"refId"`
	Datasource   datasource `json:"datasource"`
	Expr         string     `json:"expr"`
	LegendFormat string     `json:"legendFormat,omitempty"`
	Instant      bool       `json:"instant"`
	Range        bool       `json:"range"`
	Format       string     `json:"format"`
}

type fieldConfig struct {
	Defaults  fieldDefaults `json:"defaults"`
	Overrides []struct{}    `json:"overrides"`
}

type fieldDefaults struct {
	Unit       string         `json:"unit"`
	Min        *float64       `json:"min,omitempty"`
	Color      map[string]any `json:"color"`
	Custom     map[string]any `json:"custom,omitempty"`
	Thresholds *thresholds    `json:"thresholds,omitempty"`
}

type thresholds struct {
	Mode  string `json:"mode"`
	Steps []step `json:"steps"`
}

// A step is the colour from a value on; null is the lowest.
type step struct {
	Color string   `json:"color"`
	Value *float64 `json:"value"`
}

type transform struct {
	ID      string         `json:"id"`
	Options map[string]any `json:"options"`
}

// A query is an expression, and what its lines are called.
type query struct{ expr, legend string }

func at(value float64) *float64 { return &value }

var prometheus = datasource{"prometheus", "${datasource}"}

// A layout places panels in rows.
type layout struct {
	panels []panel
	y      int
}

// row places panels side by side.
func (l *layout) row(height int, panels ...panel) {
	width := 24 / len(panels)
	for i, p := range panels {
		p.ID = len(l.panels) + 1
		p.GridPos = gridPos{height, width, i * width, l.y}
		l.panels = append(l.panels, p)
	}
	l.y += height
}

func (l *layout) board(uid, title string) dashboard {
	return dashboard{
		UID: uid, Title: title, Description: "Made by go run ./deploy/grafana.", Tags: []string{"tidemark"}, Timezone: "browser", Editable: true,
		GraphTooltip: 1, Time: timeRange{"now-6h", "now"}, Refresh: "30s", SchemaVersion: 36, Version: 1,
		Templating:  templating{[]variable{{Name: "datasource", Label: "Prometheus", Type: "datasource", Query: "prometheus"}}},
		Annotations: annotations{[]struct{}{}}, Links: []struct{}{}, Panels: l.panels,
	}
}

func (l *layout) stat(title, description, expr, unit string, steps ...step) panel {
	return panel{
		Title: title, Description: description, Type: "stat", Datasource: prometheus,
		Targets: []target{{RefID: "A", Datasource: prometheus, Expr: expr, Instant: true, Format: "time_series"}},
		FieldConfig: fieldConfig{fieldDefaults{
			Unit: unit, Color: map[string]any{"mode": "thresholds"}, Thresholds: &thresholds{"absolute", steps},
		}, []struct{}{}},
		Options: map[string]any{
			"colorMode": "background", "graphMode": "none", "justifyMode": "auto", "textMode": "auto", "orientation": "auto",
			"wideLayout": true, "showPercentChange": false, "percentChangeColorMode": "standard",
			"reduceOptions": map[string]any{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
		},
	}
}

func (l *layout) series(title, description, unit string, queries ...query) panel {
	p := panel{
		Title: title, Description: description, Type: "timeseries", Datasource: prometheus,
		FieldConfig: fieldConfig{fieldDefaults{
			Unit: unit, Min: at(0), Color: map[string]any{"mode": "palette-classic"},
			Custom: map[string]any{"drawStyle": "line", "lineWidth": 1, "fillOpacity": 10, "showPoints": "never", "spanNulls": false},
		}, []struct{}{}},
		Options: map[string]any{
			"legend":  map[string]any{"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []string{}},
			"tooltip": map[string]any{"mode": "multi", "sort": "desc"},
		},
	}
	for i, q := range queries {
		p.Targets = append(p.Targets, target{
			RefID: string(rune('A' + i)), Datasource: prometheus, Expr: q.expr, LegendFormat: q.legend, Range: true, Format: "time_series",
		})
	}
	return p
}

// table shows the labels of the newest values.
func (l *layout) table(title, description, expr string) panel {
	return panel{
		Title: title, Description: description, Type: "table", Datasource: prometheus,
		Targets: []target{{RefID: "A", Datasource: prometheus, Expr: expr, Instant: true, Format: "table"}},
		FieldConfig: fieldConfig{fieldDefaults{
			Unit: "short", Color: map[string]any{"mode": "thresholds"}, Custom: map[string]any{"align": "auto", "filterable": true, "inspect": false},
		}, []struct{}{}},
		Options:   map[string]any{"showHeader": true, "frameIndex": 0},
		Transform: []transform{{"organize", map[string]any{"excludeByName": map[string]any{"Time": true}}}},
	}
}
