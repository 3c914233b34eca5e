package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The files are what the program writes, and nothing in them is unknown to the model.
func TestDashboardsAreMade(t *testing.T) {
	t.Parallel()
	var files []string
	for name, d := range dashboards() {
		files = append(files, name)
		want, err := render(d)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(name)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what go run ./deploy/grafana writes (%v)", name, err)
		}
		decoder := json.NewDecoder(bytes.NewReader(got))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&dashboard{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	found, err := filepath.Glob("*.json")
	if slices.Sort(files); err != nil || !slices.Equal(found, files) {
		t.Errorf("the folder has %v, want %v (%v)", found, files, err)
	}
}

// Grafana's rules for what it reads: https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/
func TestDashboardsFitTheModel(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for name, d := range dashboards() {
		if len(d.UID) < 8 || len(d.UID) > 40 || seen[d.UID] || d.Title == "" {
			t.Errorf("%s: uid %q, title %q", name, d.UID, d.Title)
		}
		seen[d.UID] = true
		ids := map[int]bool{}
		for i, p := range d.Panels {
			if p.ID < 1 || ids[p.ID] || p.Title == "" || len(p.Targets) == 0 {
				t.Errorf("%s: panel %d: %q", name, p.ID, p.Title)
			}
			ids[p.ID] = true
			if !slices.Contains([]string{"stat", "timeseries", "table"}, p.Type) {
				t.Errorf("%s: %s has the type %s", name, p.Title, p.Type)
			}
			g := p.GridPos
			if g.H < 1 || g.W < 1 || g.X < 0 || g.X+g.W > 24 {
				t.Errorf("%s: %s is at %+v", name, p.Title, g)
			}
			for _, q := range d.Panels[:i] {
				o := q.GridPos
				if g.X < o.X+o.W && o.X < g.X+g.W && g.Y < o.Y+o.H && o.Y < g.Y+g.H {
					t.Errorf("%s: %s lies on %s", name, p.Title, q.Title)
				}
			}
			refs := map[string]bool{}
			for _, q := range p.Targets {
				if q.Instant == q.Range || refs[q.RefID] || q.Datasource != p.Datasource {
					t.Errorf("%s: %s: target %+v", name, p.Title, q)
				}
				refs[q.RefID] = true
			}
			if s := p.FieldConfig.Defaults.Thresholds; s != nil && (len(s.Steps) == 0 || s.Steps[0].Value != nil) {
				t.Errorf("%s: %s: the first threshold must be the lowest", name, p.Title)
			}
		}
	}
}

func expressions() (all []string) {
	boards := dashboards()
	for _, name := range slices.Sorted(maps.Keys(boards)) {
		for _, p := range boards[name].Panels {
			for _, q := range p.Targets {
				all = append(all, strings.ReplaceAll(q.Expr, "$__rate_interval", "5m"))
			}
		}
	}
	return all
}

// A panel about a metric that the daemon does not have would be empty for ever.
func TestDashboardsAskForMetrics(t *testing.T) {
	t.Parallel()
	var code string
	for _, name := range []string{"metrics.go", "health_metrics.go", "commands_metrics.go"} {
		text, err := os.ReadFile("../../internal/daemon/" + name)
		if err != nil {
			t.Fatal(err)
		}
		code += string(text)
	}
	has := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?:"tidemark_|desc\(\s*")(\w+)"`).FindAllStringSubmatch(code, -1) {
		has["tidemark_"+m[1]] = true
	}
	for _, e := range expressions() {
		for _, metric := range regexp.MustCompile(`tidemark_\w+`).FindAllString(e, -1) {
			if !has[strings.TrimSuffix(metric, "_bucket")] {
				t.Errorf("%s asks for %s, which the daemon does not have", e, metric)
			}
		}
	}
}

// Prometheus' own parser reads each expression.
func TestDashboardsParse(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (Debian: prometheus)")
	}
	rules := "groups: [{name: dashboards, rules: [\n"
	for i, e := range expressions() {
		rules += fmt.Sprintf("{record: 'r%d', expr: '%s'},\n", i, strings.ReplaceAll(e, "'", "''"))
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte(rules+"]}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}
