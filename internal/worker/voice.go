package worker

import (
	"context"
	"fmt"
	"log/slog"
)

// A voice logs what is new: a worker that waits for an hour says so once.
type voice struct {
	log  *slog.Logger
	said string
}

// say logs the message with its attributes, key by key, unless that is what it said last. An attribute without a value
// is left out.
func (v *voice) say(ctx context.Context, level slog.Level, message string, args ...any) {
	var attributes []any
	for i := 0; i+1 < len(args); i += 2 {
		if args[i+1] != nil && args[i+1] != "" {
			attributes = append(attributes, args[i], args[i+1])
		}
	}
	if text := fmt.Sprintln(append([]any{message}, attributes...)...); text != v.said {
		v.said = text
		v.log.Log(ctx, level, message, attributes...)
	}
}
