package main

import (
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/lmittmann/tint"

	"github.com/tidemarkhq/tidemark/internal/config"
)

// newLogger makes the daemon's logger: an object a line with time, level and msg, or
// lines for people, which have colours on a terminal unless NO_COLOR is set. Secrets
// redact themselves in both.
func newLogger(w io.Writer, isTerminal bool, c config.Log) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.Level)) // checked when it was read; else info
	if c.Format == "json" || (c.Format != "text" && !isTerminal) {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: inUTC}))
	}
	return slog.New(tint.NewTextHandler(w, &tint.Options{
		Level:      level,
		TimeFormat: "15:04:05.000",
		NoColor:    !isTerminal || os.Getenv("NO_COLOR") != "",
	}))
}

// inUTC spares those who put the logs of several hosts together a thought.
func inUTC(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime {
		return slog.Time(a.Key, a.Value.Time().UTC().Truncate(time.Microsecond))
	}
	return a
}
