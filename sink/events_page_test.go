package sink_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/docpage"
	"github.com/tidemarkhq/tidemark/sink"
)

var update = flag.Bool("update", false, "rewrite the bodies in docs/events.md")

// docs/events.md has an event in each format.
func TestEventsPage(t *testing.T) {
	t.Parallel()
	var bodies strings.Builder
	for _, format := range []sink.Format{sink.CloudEvents, sink.CloudEventsBinary, sink.JSON} {
		got, err := sink.Encode(format, paid())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&bodies, "\n### %s\n\nContent type `%s`.", format, got.ContentType)
		if format == sink.CloudEventsBinary {
			bodies.WriteString(" The attributes are headers: `ce-` and the name over HTTP and NATS, `ce_` and the name in Kafka.\n\n```\n")
			for _, h := range got.Headers {
				fmt.Fprintf(&bodies, "%s: %s\n", h.Name, h.Value)
			}
			bodies.WriteString("```")
		}
		fmt.Fprintf(&bodies, "\n\n```\n%s\n```\n", got.Body)
	}
	docpage.Part(t, "../docs/events.md", "bodies", "go test ./sink -run TestEventsPage -update", strings.TrimPrefix(bodies.String(), "\n"), *update)
}
