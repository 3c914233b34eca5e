package daemon

import (
	"flag"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/metrictable"
)

var update = flag.Bool("update", false, "rewrite the tables in docs/metrics.md")

// docs/metrics.md has every metric of the daemon.
func TestMetricsPage(t *testing.T) {
	t.Parallel()
	var own, ofDatabase metrictable.Collectors
	newMetrics(&own).registerCommands(&own, nil)
	registerPool(&own, nil, nil)
	own.MustRegister(newAnswers())
	ofDatabase.MustRegister(health{})
	own.Check(t, "process", *update)
	ofDatabase.Check(t, "database", *update)
}
