package store_test

import (
	"errors"
	"testing"

	"go.uber.org/goleak"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

func TestMain(m *testing.M) {
	tidemarktest.Main(m, func() error { return goleak.Find() })
}

// setup gives a database with the domain shop and its type order.paid.
func setup(t *testing.T) (*tidemarktest.DB, *store.DB) {
	t.Helper()
	test := tidemarktest.NewDB(t)
	db := store.New(test.Pool)
	must(t)(db.TypeSet(t.Context(), "shop", "order.paid", store.Changes{"description": "An order was paid."}, "test"))
	return test, db
}

// must fails the test for a call's error.
func must(t *testing.T) func(any, error) {
	t.Helper()
	return func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// emit emits an event.
func emit(t *testing.T, test *tidemarktest.DB, e tidemark.Event) {
	t.Helper()
	if _, err := tidemark.Emit(t.Context(), test.Pool, e); err != nil {
		t.Fatal(err)
	}
}

func exec(t *testing.T, test *tidemarktest.DB, sql string) {
	t.Helper()
	if _, err := test.Pool.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func open(t *testing.T, db *store.DB, worker string) {
	t.Helper()
	for _, gate := range []string{"routes.enabled", "worker." + worker + ".enabled"} {
		if err := db.GateSet(t.Context(), gate, true, "test"); err != nil {
			t.Fatal(err)
		}
	}
}

func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}
