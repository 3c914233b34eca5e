package consumer_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

func TestMain(m *testing.M) {
	tidemarktest.Main(m, func() error { return goleak.Find() })
}
