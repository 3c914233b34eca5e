package main

import (
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/lmittmann/tint"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/oneline"
)

// newLogger makes the daemon's logger: one JSON object a line with time, level and msg, or lines of text, in colour
// on a terminal unless NO_COLOR is set. Secrets redact themselves, and the value of a forbidden key is hidden.
func newLogger(w io.Writer, isTerminal bool, c config.Log) (logger *slog.Logger, level *slog.LevelVar) {
	level = new(slog.LevelVar)
	setLevel(level, c)
	if c.Format == "json" || (c.Format != "text" && !isTerminal) {
		return slog.New(slog.NewJSONHandler(oneline.JSONWriter{Writer: w},
			&slog.HandlerOptions{Level: level, ReplaceAttr: clean})), level
	}
	return slog.New(tint.NewTextHandler(w, &tint.Options{
		Level:       level,
		TimeFormat:  "15:04:05.000",
		ReplaceAttr: hide,
		NoColor:     !isTerminal || os.Getenv("NO_COLOR") != "" || cli.Dumb(),
	})), level
}

func setLevel(level *slog.LevelVar, c config.Log) {
	_ = level.UnmarshalText([]byte(c.Level)) // config.Load has checked it; without a level it is info
}

// forbidden has the keys of the table tidemark.forbidden_key as it ships, without "_". Keys that an operator adds to
// the table hold for events and heartbeats. Our log lines carry no payload; this is a second line of defence.
var forbidden = map[string]bool{
	"body": true, "content": true, "raw": true, "vector": true, "embedding": true,
	"secret": true, "token": true, "password": true, "ssn": true, "personaldata": true,
}

// hide redacts the value of a forbidden key, in any letter case and with or without separators; in a group too.
func hide(groups []string, a slog.Attr) slog.Attr {
	for _, key := range append([]string{a.Key}, groups...) {
		plain := strings.NewReplacer("_", "", "-", "", ".", "", " ", "").Replace(strings.ToLower(key))
		if forbidden[plain] {
			return slog.String(a.Key, "***")
		}
	}
	return a
}

// clean hides, and writes times in UTC, so that the logs of several hosts can be merged.
func clean(groups []string, a slog.Attr) slog.Attr {
	a = hide(groups, a)
	if len(groups) == 0 && a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime {
		return slog.Time(a.Key, a.Value.Time().UTC().Truncate(time.Microsecond))
	}
	return a
}
