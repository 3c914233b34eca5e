package worker

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// Observer is told what a worker does. Its functions must not block; those that are nil are not called.
type Observer struct {
	Claimed func(epoch int64)
	Lost    func(why error)
	Read    func(events int, took time.Duration)
	Settled func(results int, took time.Duration)
	// Decided hears of the page whose events were just decided. It must not keep them.
	Decided func(items []store.Item, began time.Time, took time.Duration)
}

func (o *Observer) claimed(epoch int64) {
	if o.Claimed != nil {
		o.Claimed(epoch)
	}
}

func (o *Observer) lost(why error) {
	if o.Lost != nil {
		o.Lost(why)
	}
}

func (o *Observer) read(events int, took time.Duration) {
	if o.Read != nil {
		o.Read(events, took)
	}
}

func (o *Observer) decided(items []store.Item, began time.Time, took time.Duration) {
	if o.Decided != nil {
		o.Decided(items, began, took)
	}
}

func (o *Observer) settled(results int, took time.Duration) {
	if o.Settled != nil {
		o.Settled(results, took)
	}
}

// A reporter tells what happens to a worker: in the log, to the Observer, and by the finding worker_failing.
type reporter struct {
	onceLog
	failing failing
	observe Observer
}

// failed reports that a step failed and will be tried again. That a step was ended by ctx is no failure.
func (r *reporter) failed(ctx context.Context, step string, err error) {
	if ctx.Err() == nil {
		r.once(ctx, slog.LevelWarn, step+" failed", "error", err)
		r.failing.failed(ctx, step, err)
	}
}

// well reports that a whole pass went well: what fails after it is news.
func (r *reporter) well(ctx context.Context) {
	r.forget()
	r.failing.well(ctx)
}

// waits logs why a claim did not get the lease. When the lease of another instance ends is not worth a line each time.
func (r *reporter) waits(ctx context.Context, c store.Claim) {
	level, key := slog.LevelInfo, c.Status
	switch c.Status {
	case "held":
		level = slog.LevelWarn
		fallthrough
	case "closed":
		key += " " + c.Detail
	}
	r.onceAs(ctx, level, key, "waiting", "status", c.Status, "detail", c.Detail)
}

// A onceLog logs what is new: a worker that waits for an hour says so once.
type onceLog struct {
	log *slog.Logger

	mu   sync.Mutex
	last string
}

// forget makes the next message new.
func (o *onceLog) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = ""
}

// once logs the message with its attributes, key by key, unless the latest message was the same. An attribute without a value
// is left out.
func (o *onceLog) once(ctx context.Context, level slog.Level, message string, args ...any) {
	o.onceAs(ctx, level, fmt.Sprintln(append([]any{message}, withValue(args)...)...), message, args...)
}

// onceAs takes messages with the same key for the same message.
func (o *onceLog) onceAs(ctx context.Context, level slog.Level, key, message string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if key != o.last {
		o.last = key
		o.log.Log(ctx, level, message, withValue(args)...)
	}
}

func withValue(args []any) (attributes []any) {
	for i := 0; i+1 < len(args); i += 2 {
		if args[i+1] != nil && args[i+1] != "" {
			attributes = append(attributes, args[i], args[i+1])
		}
	}
	return attributes
}
