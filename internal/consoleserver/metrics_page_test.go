package consoleserver

import (
	"flag"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/metrictable"
)

var update = flag.Bool("update", false, "rewrite the table in docs/metrics.md")

// docs/metrics.md has every metric of the console.
func TestMetricsPage(t *testing.T) {
	t.Parallel()
	metrictable.Collectors(newMetrics().all()).Check(t, "console", *update)
}
