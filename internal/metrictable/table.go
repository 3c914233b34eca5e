// Package metrictable makes the tables of docs/metrics.md from the metrics themselves. Only tests use it.
package metrictable

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemarkhq/tidemark/internal/docpage"
)

// Collectors is a registerer that keeps what it is given.
type Collectors []prometheus.Collector

// Register implements prometheus.Registerer.
func (c *Collectors) Register(one prometheus.Collector) error {
	*c = append(*c, one)
	return nil
}

// MustRegister implements prometheus.Registerer.
func (c *Collectors) MustRegister(all ...prometheus.Collector) { *c = append(*c, all...) }

// Unregister implements prometheus.Registerer.
func (c *Collectors) Unregister(prometheus.Collector) bool { return false }

// described are the parts of a description, which only its text tells.
var described = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: ("(?:[^"\\]|\\.)*"), unit: "[^"]*", constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)

// table has a row for each metric, by name.
func (c Collectors) table(t *testing.T) string {
	var rows []string
	for _, one := range c {
		descriptions := make(chan *prometheus.Desc, 100)
		one.Describe(descriptions)
		close(descriptions)
		for d := range descriptions {
			found := described.FindStringSubmatch(d.String())
			if found == nil {
				t.Fatalf("the description %s has another form than the test knows", d)
			}
			name, labels := found[1], found[4]
			for label := range strings.SplitSeq(found[3], ",") {
				if key, _, has := strings.Cut(label, "="); has {
					labels = strings.Trim(labels+","+key, ",")
				}
			}
			if labels != "" {
				labels = "`" + strings.ReplaceAll(labels, ",", "`, `") + "`"
			}
			help := strings.ReplaceAll(strings.ReplaceAll(strings.Trim(found[2], `"`), `\"`, `"`), "|", `\|`)
			rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |\n", name, kind(one, name), labels, help))
		}
	}
	slices.Sort(rows)
	return "| metric | type | labels | meaning |\n|---|---|---|---|\n" + strings.Join(slices.Compact(rows), "")
}

func kind(c prometheus.Collector, name string) string {
	switch c.(type) {
	case *prometheus.HistogramVec:
		return "histogram"
	case *prometheus.CounterVec:
		return "counter"
	}
	if strings.HasSuffix(name, "_total") {
		return "counter"
	}
	return "gauge"
}

// Check fails unless docs/metrics.md has the table of these metrics between the marks of that name; with update it writes it. It is for
// packages two folders deep.
func (c Collectors) Check(t *testing.T, name string, update bool) {
	t.Helper()
	docpage.Part(t, "../../docs/metrics.md", name, "go test ./internal/daemon ./internal/consoleserver -run TestMetricsPage -update", c.table(t), update)
}
