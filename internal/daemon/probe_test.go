package daemon

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/tidemarkhq/tidemark/sink"
)

// unclosing accepts everything, and its Close fails.
type unclosing struct{ closed int }

func (u *unclosing) Deliver(_ context.Context, batch []sink.Delivery) []sink.Result {
	return slices.Repeat([]sink.Result{{Status: sink.Delivered}}, len(batch))
}
func (u *unclosing) Limits() sink.Limits { return sink.Limits{} }
func (u *unclosing) Close() error        { u.closed++; return errors.New("the connection broke") }

// The result of a delivery does not change if the connection fails to close.
func TestProbeOfATargetThatDoesNotClose(t *testing.T) {
	t.Parallel()
	target := &unclosing{}
	result, _ := deliverOnce(t.Context(), target, sink.Delivery{})
	if result.Status != sink.Delivered || target.closed != 1 {
		t.Errorf("%+v, closed %d times", result, target.closed)
	}
}
