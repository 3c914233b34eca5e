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
	Overrides []override    `json:"overrides"`
}

type fieldDefaults struct {
	Unit       string         `json:"unit"`
	Min        *float64       `json:"min,omitempty"`
	Color      map[string]any `json:"color"`
	Custom     map[string]any `json:"custom,omitempty"`
	Thresholds *thresholds    `json:"thresholds,omitempty"`
	Mappings   []mapping      `json:"mappings,omitempty"`
	NoValue    string         `json:"noValue,omitempty"`
}

// An override is what differs for the column, or the lines, of a name.
type override struct {
	Matcher    matcher    `json:"matcher"`
	Properties []property `json:"properties"`
}

type matcher struct {
	ID      string `json:"id"`
	Options string `json:"options"`
}

type property struct {
	ID    string `json:"id"`
	Value any    `json:"value"`
}

// A mapping shows values as words, in colours.
type mapping struct {
	Type    string          `json:"type"`
	Options map[string]word `json:"options"`
}

type word struct {
	Text  string `json:"text"`
	Color string `json:"color"`
	Index int    `json:"index"`
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
		}, []override{}},
		Options: map[string]any{
			"colorMode": "background", "graphMode": "none", "justifyMode": "auto", "textMode": "auto", "orientation": "auto",
			"wideLayout": true, "showPercentChange": false, "percentChangeColorMode": "standard",
			"reduceOptions": map[string]any{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
		},
	}
}

// says has words for 0 and 1.
func (p panel) says(no, yes word) panel {
	no.Index, yes.Index = 0, 1
	p.FieldConfig.Defaults.Mappings = []mapping{{"value", map[string]word{"0": no, "1": yes}}}
	return p
}

// without is what it says when there is nothing to show.
func (p panel) without(text string) panel {
	p.FieldConfig.Defaults.NoValue = text
	return p
}

func (l *layout) series(title, description, unit string, queries ...query) panel {
	p := panel{
		Title: title, Description: description, Type: "timeseries", Datasource: prometheus,
		FieldConfig: fieldConfig{fieldDefaults{
			Unit: unit, Min: at(0), Color: map[string]any{"mode": "palette-classic"},
			Custom: map[string]any{"drawStyle": "line", "lineWidth": 2, "fillOpacity": 0, "showPoints": "never", "spanNulls": false},
		}, []override{}},
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

// from draws a line at the value from which it is a warning.
func (p panel) from(value float64) panel {
	p.FieldConfig.Defaults.Thresholds = &thresholds{"absolute", []step{{"green", nil}, {"orange", at(value)}}}
	p.FieldConfig.Defaults.Custom["thresholdsStyle"] = map[string]any{"mode": "dashed"}
	return p
}

// stacked draws counts on top of each other.
func (p panel) stacked() panel {
	custom := p.FieldConfig.Defaults.Custom
	custom["stacking"] = map[string]any{"mode": "normal", "group": "A"}
	custom["lineInterpolation"], custom["lineWidth"], custom["fillOpacity"] = "stepAfter", 0, 60
	return p
}

// outcomes have the same colours in each panel.
func (p panel) outcomes() panel {
	for _, o := range []struct{ name, color string }{{"delivered", "green"}, {"retry", "orange"}, {"permanent", "red"}, {"unknown", "purple"}} {
		p.FieldConfig.Overrides = append(p.FieldConfig.Overrides, override{
			matcher{"byName", o.name}, []property{{"color", map[string]any{"mode": "fixed", "fixedColor": o.color}}},
		})
	}
	return p
}

// A column shows a label of the newest values, or the value.
type column struct{ label, title string }

// table shows the newest values, sorted by their first column.
func (l *layout) table(title, description, expr string, columns ...column) panel {
	excluded, places, titles := map[string]bool{"Time": true, "Value": true}, map[string]int{}, map[string]string{}
	for i, c := range columns {
		places[c.label], titles[c.label] = i, c.title
		delete(excluded, c.label)
	}
	return panel{
		Title: title, Description: description, Type: "table", Datasource: prometheus,
		Targets: []target{{RefID: "A", Datasource: prometheus, Expr: expr, Instant: true, Format: "table"}},
		FieldConfig: fieldConfig{fieldDefaults{
			Unit: "short", Color: map[string]any{"mode": "thresholds"}, Custom: map[string]any{"align": "left", "filterable": true, "inspect": false},
		}, []override{}},
		Options:   map[string]any{"showHeader": true, "frameIndex": 0, "sortBy": []map[string]any{{"displayName": columns[0].title, "desc": false}}},
		Transform: []transform{{"organize", map[string]any{"excludeByName": excluded, "indexByName": places, "renameByName": titles}}},
	}
}

// colored gives the words of a column colours.
func (p panel) colored(column string, words ...word) panel {
	all := map[string]word{}
	for i, w := range words {
		w.Index = i
		all[w.Text] = w
	}
	p.FieldConfig.Overrides = append(p.FieldConfig.Overrides, override{matcher{"byName", column}, []property{
		{"mappings", []mapping{{"value", all}}}, {"custom.cellOptions", map[string]any{"type": "color-background", "mode": "basic"}}, {"custom.width", 90},
	}})
	return p
}

// runbooks links the words of a column to their pages.
func (p panel) runbooks(column string) panel {
	p.FieldConfig.Overrides = append(p.FieldConfig.Overrides, override{matcher{"byName", column}, []property{
		{"links", []map[string]any{{"title": "Runbook", "url": "https://github.com/tidemarkhq/tidemark/blob/main/docs/runbooks/${__value.text}.md", "targetBlank": true}}},
	}})
	return p
}
