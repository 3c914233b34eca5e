package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// comparing is a database that notes what it is asked to compare.
type comparing struct {
	store.Querier
	mu    sync.Mutex
	heard map[string][]string // by target
}

func (c *comparing) QueryRow(_ context.Context, _ string, args ...any) pgx.Row {
	c.mu.Lock()
	defer c.mu.Unlock()
	target := args[0].(string)
	c.heard[target] = append(c.heard[target], args[1].([]string)...)
	return placeAndMark{}
}

type placeAndMark struct{}

func (placeAndMark) Scan(into ...any) error {
	*into[0].(*string), *into[1].(*string) = "place", "mark"
	return nil
}

// A fakeBroker answers the nth look, from 1 on. The first mark is left without listening.
type fakeBroker struct {
	looks []time.Duration
	began time.Time
	look  func(ctx context.Context, n int) ([]string, error)
}

func (f *fakeBroker) Heard(ctx context.Context) ([]string, error) {
	f.looks = append(f.looks, time.Since(f.began))
	return f.look(ctx, len(f.looks))
}

func (f *fakeBroker) Leave(context.Context, string) error { return nil }

func (f *fakeBroker) at(target string) broker {
	return broker{target, f, func(string) (marks, error) { return f, nil }}
}

// listenFor listens to the brokers that are open at a time, for so long. It returns what was compared, and the log.
func listenFor(t *testing.T, long time.Duration, open func(since time.Duration) []broker) (*comparing, string) {
	db, began, log := &comparing{heard: map[string][]string{}}, time.Now(), &strings.Builder{}
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	listen(ctx, func() []broker { return open(time.Since(began)) }, db, slog.New(slog.NewTextHandler(log, nil)))
	return db, log.String()
}

// The rule of copies_compare counts on looks that are 5 seconds apart.
func TestABrokerThatHangsDelaysNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hangs := &fakeBroker{began: time.Now(), look: func(ctx context.Context, _ int) ([]string, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		lives := &fakeBroker{began: time.Now(), look: func(_ context.Context, n int) ([]string, error) {
			time.Sleep(time.Duration(n%4) * time.Second)
			return []string{fmt.Sprint("m", n)}, nil
		}}
		db, log := listenFor(t, 62*time.Second, func(since time.Duration) []broker {
			all := []broker{hangs.at("kafka dead")}
			if since < 33*time.Second || since > 50*time.Second {
				all = append(all, lives.at("kafka main"))
			}
			return all
		})
		var want []time.Duration
		for _, second := range []time.Duration{5, 10, 15, 20, 25, 30, 56, 61} { // opened at 0 and at 51
			want = append(want, second*time.Second)
		}
		if !slices.Equal(lives.looks, want) {
			t.Errorf("looks at %v, want %v", lives.looks, want)
		}
		if got := db.heard["kafka main"]; len(got) != 8 {
			t.Errorf("compared %v", got)
		}
		if strings.Count(log, "cannot compare") != 1 || !strings.Contains(log, `target="kafka dead"`) {
			t.Errorf("the log:\n%s", log)
		}
	})
}

// After a look that heard nothing, marks may be older than the rule allows.
func TestLateMarksAreNotCompared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &fakeBroker{began: time.Now(), look: func(_ context.Context, n int) ([]string, error) {
			if n == 3 {
				return nil, errors.New("away")
			}
			return []string{fmt.Sprint("m", n)}, nil
		}}
		db, _ := listenFor(t, 32*time.Second, func(time.Duration) []broker { return []broker{b.at("nats bus")} })
		if got := db.heard["nats bus"]; !slices.Equal(got, []string{"m1", "m2", "m5", "m6"}) {
			t.Errorf("compared %v", got)
		}
	})
}

// The port of this side is another one for each connection.
func TestCannotCompareIsSaidOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &fakeBroker{began: time.Now(), look: func(_ context.Context, n int) ([]string, error) {
			if n == 5 {
				return nil, nil
			}
			return nil, fmt.Errorf("read tcp 10.0.0.1:%d->10.0.0.2:9092: i/o timeout", 40000+n)
		}}
		_, log := listenFor(t, 52*time.Second, func(time.Duration) []broker { return []broker{b.at("kafka main")} })
		if strings.Count(log, "cannot compare") != 2 || !strings.Contains(log, ":40001->") || !strings.Contains(log, ":40006->") {
			t.Errorf("the log:\n%s", log)
		}
	})
}
