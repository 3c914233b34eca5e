package nats

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/sink"
)

// A host without files to open counts as no attempt, also where the time is up before the patience is.
func TestHostLacksFiles(t *testing.T) {
	t.Parallel()
	for name, timeout := range map[string]time.Duration{"out of patience": time.Minute, "out of time": 500 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lacks := net.Dialer{Control: func(string, string, syscall.RawConn) error { return syscall.EMFILE }}
			c, err := dialWith(Options{Servers: []string{"nats://127.0.0.1:4222"}, Timeout: timeout}, lacks)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			s, err := c.Sink("shop.events", sink.JSON)
			if err != nil {
				t.Fatal(err)
			}
			got := s.Deliver(t.Context(), []sink.Delivery{{Route: "r", Attempt: 1, Epoch: 1, Event: tidemark.Event{
				ID: "0199f3a2-7c1e-7d4a-9b1f-000000000001", Seq: 1, Domain: "shop", Type: "order", Payload: []byte(`{}`),
			}}})[0]
			if got.Status != sink.Retry || !got.Local || got.Code != Local {
				t.Errorf("%+v", got)
			}
		})
	}
}
