package consumer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/consumer"
)

func TestHandleFunc(t *testing.T) {
	t.Parallel()
	p := prepared(t, "")
	type order struct{ Cents int64 }
	p.runClient(func(c *consumer.Client) {
		c.Handle("shop/*", consumer.HandleFunc(func(ctx context.Context, tx pgx.Tx, e tidemark.Event, o order) error {
			_, err := tx.Exec(ctx, `insert into effect values ($1)`, fmt.Sprint(e.Key, o.Cents))
			return err
		}))
	})
	p.exec(`select tidemark.emit_strict('shop', 'order.paid', '{"cents": 7}', 'a'), tidemark.emit_strict('shop', 'order.paid', '{"cents": "x"}', 'b')`)
	p.eventually(effects, "a7")
	p.eventually(`select regexp_replace(error_detail, 'json: .*', '') || attempts from tidemark.dead_letter`, "the payload is no consumer_test.order: 1")
}

// Middleware stands around every handler, the first outermost, and sees a panic as an error, with the place.
func TestUse(t *testing.T) {
	t.Parallel()
	for _, concurrency := range []int{1, 2} {
		t.Run(fmt.Sprint(concurrency), func(t *testing.T) {
			t.Parallel()
			p := prepared(t, `"retry_policy": {"max_attempts": 2, "base_seconds": 0.001}`)
			var log bytes.Buffer
			spans := tracetest.NewSpanRecorder()
			tracer := trace.NewTracerProvider(trace.WithSpanProcessor(spans)).Tracer("test")
			var seen []string
			client, pool := p.client(concurrency)
			mark := func(name string) consumer.Middleware {
				return func(next consumer.Handler) consumer.Handler {
					return func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
						seen = append(seen, name)
						return next(ctx, tx, e)
					}
				}
			}
			client.Use(mark("outer"), mark("inner"))
			client.Use(consumer.Log(slog.New(slog.NewTextHandler(&log, nil))), consumer.Trace(tracer))
			client.Use(consumer.Observe(func(_ context.Context, call consumer.Call, e tidemark.Event, took time.Duration, err error) {
				seen = append(seen, fmt.Sprint(call.Route, " ", call.Attempt, " ", e.Key, " ", took > 0, " ", err))
			}))
			client.Handle("shop/*", func(ctx context.Context, _ pgx.Tx, _ tidemark.Event) error {
				if len(spans.Started()) > 1 {
					return consumer.Permanent(errors.New("gave up"))
				}
				var none []int
				none[consumer.CallOf(ctx).Attempt]++
				return nil
			})
			stop := p.runs(client, pool)
			p.exec(`select tidemark.emit_strict('shop', 'order.paid', key => 'k', trace => '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01')`)
			p.eventually(`select error_detail from tidemark.dead_letter`, "gave up")
			stop()

			// Without concurrency a handler that fails is called again at once, alone.
			lines := regexp.MustCompile(`go:\d+`).ReplaceAllString(strings.Join(slices.Compact(seen), "\n"), "go:N")
			const panicked = "outer\ninner\nbilling.shop.all 1 k true panic: runtime error: index out of range [1] with length 0 (consumer_test.TestUse.func1.3, call_test.go:N)\n"
			const gaveUp = "outer\ninner\nbilling.shop.all %d k true gave up"
			want := panicked + fmt.Sprintf(gaveUp, 2)
			if concurrency == 1 {
				want = panicked + fmt.Sprintf(gaveUp, 1)
			}
			if diff := cmp.Diff(want, lines); diff != "" {
				t.Error(diff)
			}
			if text := log.String(); strings.Count(text, "handler failed") != 2 || !strings.Contains(text, "type=shop/order.paid attempt=1") {
				t.Errorf("log: %s", text)
			}
			ended := spans.Ended()
			if len(ended) != 2 || ended[0].Name() != "handle shop/order.paid" || ended[0].SpanContext().TraceID().String() != "0af7651916cd43dd8448eb211c80319c" ||
				ended[1].Status().Description != "gave up" {
				t.Errorf("spans: %+v", ended)
			}
		})
	}
}
