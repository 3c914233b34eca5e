package kafka

import (
	"context"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/sink"
)

// A host without files to open counts as no attempt: neither for the first connection nor for the one that takes the records, which
// the client tries until the time is up.
func TestHostLacksFiles(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "events"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	for name, first := range map[string]int32{"no connection": 0, "no second connection": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := Dial(Options{Brokers: cluster.ListenAddrs(), Timeout: 3 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			var dials atomic.Int32
			plain := c.dial
			c.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				if dials.Add(1) > first {
					return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("socket", syscall.EMFILE)}
				}
				return plain(ctx, network, address)
			}
			s, err := c.Sink("events", sink.JSON)
			if err != nil {
				t.Fatal(err)
			}
			batch := []sink.Delivery{{Route: "r", Attempt: 1, Epoch: 1, Event: tidemark.Event{
				ID: "0199f3a2-7c1e-7d4a-9b1f-000000000001", Seq: 1, Domain: "shop", Type: "order", Payload: []byte(`{}`),
			}}}
			got := s.Deliver(t.Context(), batch)[0]
			if got.Status != sink.Retry || !got.Local || got.Code != Local {
				t.Errorf("%+v", got)
			}
			if dials.Load() <= first {
				t.Errorf("%d dials prove nothing", dials.Load())
			}
		})
	}
}

// What may have arrived is an attempt, whatever the host lacks.
func TestUnansweredIsNotLocal(t *testing.T) {
	t.Parallel()
	err := &net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.ENOBUFS)}
	if got := unanswered(t.Context(), err); got.Status != sink.Unknown || got.Local {
		t.Errorf("%+v", got)
	}
}
