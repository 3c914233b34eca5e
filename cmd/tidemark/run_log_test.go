package main

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/internal/config"
)

func TestLogFormats(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		format     string
		isTerminal bool
		wantJSON   bool
		colours    bool
	}{
		{"auto", false, true, false},
		{"auto", true, false, true},
		{"json", true, true, false},
		{"text", false, false, false},
		{"text", true, false, true},
	} {
		var out bytes.Buffer
		logger(&out, test.isTerminal, config.Log{Level: "info", Format: test.format}).Info("worker started", "worker", "default")
		if json.Valid(out.Bytes()) != test.wantJSON || strings.Contains(out.String(), "\x1b[") != test.colours {
			t.Errorf("%+v: %q", test, out.String())
		}
		if !strings.Contains(out.String(), "worker started") || !strings.Contains(out.String(), "default") {
			t.Errorf("%+v: %q", test, out.String())
		}
	}
}

func TestNoColor(t *testing.T) { //nolint:paralleltest // it sets a variable
	t.Setenv("NO_COLOR", "1")
	var out bytes.Buffer
	logger(&out, true, config.Log{Level: "info", Format: "auto"}).Warn("x")
	if strings.Contains(out.String(), "\x1b[") {
		t.Errorf("%q", out.String())
	}
}

func TestLogKeysAndLevels(t *testing.T) {
	t.Parallel()
	for level, want := range map[string]int{"debug": 4, "info": 3, "warn": 2, "error": 1, "": 3} {
		var out bytes.Buffer
		logger, _ := newLogger(&out, false, config.Log{Level: level, Format: "json"})
		logger.Debug("a")
		logger.Info("a")
		logger.Warn("a")
		logger.Error("a", slog.Group("g", "time", "mine"))
		if got := strings.Count(out.String(), "\n"); got != want {
			t.Errorf("%s: %d lines", level, got)
		}
		for line := range strings.Lines(out.String()) {
			var fields struct {
				Time       time.Time
				Level, Msg string
			}
			if err := json.Unmarshal([]byte(line), &fields); err != nil || fields.Msg != "a" || fields.Level == "" {
				t.Errorf("%s: %v", line, err)
			}
			if fields.Time.IsZero() {
				t.Errorf("%s has no time", line)
			}
		}
	}
}

func TestLogTimesAreInUTC(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	at := time.Date(2026, 1, 31, 14, 0, 0, 123456789, time.FixedZone("", 2*60*60))
	err := logger(&out, false, config.Log{}).Handler().Handle(t.Context(), slog.NewRecord(at, slog.LevelInfo, "a", 0))
	if err != nil || out.String() != `{"time":"2026-01-31T12:00:00.123456Z","level":"INFO","msg":"a"}`+"\n" {
		t.Error(out.String(), err)
	}
}

func TestLogsHideSecrets(t *testing.T) {
	t.Parallel()
	secret := config.NewSecret("hidden")
	c := config.Default()
	c.Database.URL = secret
	c.Secrets = map[string][]config.Secret{"billing": {secret}}
	for _, format := range []string{"json", "text"} {
		for _, isTerminal := range []bool{true, false} {
			var out bytes.Buffer
			logger, _ := newLogger(&out, isTerminal, config.Log{Format: format})
			logger.With("with", secret).WithGroup("g").Info("x", "secret", secret, "pointer", &secret, "list", []config.Secret{secret},
				"config", c, "to config", &c, slog.Group("in", "secret", secret), "inside", struct{ s config.Secret }{secret})
			if strings.Contains(out.String(), "hidden") || !strings.Contains(out.String(), "***") {
				t.Errorf("%s: %s", format, out.String())
			}
		}
	}
}

// EV5 in logs.
func TestLogsHideForbiddenKeys(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "text"} {
		var out bytes.Buffer
		logger, _ := newLogger(&out, false, config.Log{Format: format})
		logger.With("Password", "hidden").WithGroup("content").Info("x", "n", "hidden")
		logger.Info("x", "worker", "shown", "token", "hidden", "personal-data", 9182736450, "RAW", []string{"hidden"}, slog.Group("body", "n", "hidden"))
		if s := out.String(); strings.Contains(s, "hidden") || strings.Contains(s, "9182736450") || !strings.Contains(s, "shown") {
			t.Errorf("%s: %s", format, s)
		}
	}
}

// The forbidden keys are those that the schema ships.
func TestForbiddenKeysAreTheSchemas(t *testing.T) {
	t.Parallel()
	_, list, found := strings.Cut(read(t, "../../sql/migrations/0002_events.sql"), "insert into tidemark.forbidden_key (key)")
	list, _, _ = strings.Cut(list, ";")
	keys := regexp.MustCompile(`'(\w+)'`).FindAllStringSubmatch(list, -1)
	if !found || len(keys) != len(forbidden) {
		t.Fatalf("%d keys in the schema, %d here", len(keys), len(forbidden))
	}
	for _, key := range keys {
		if !forbidden[strings.ReplaceAll(key[1], "_", "")] {
			t.Errorf("%s is not hidden", key[1])
		}
	}
}

func logger(w io.Writer, isTerminal bool, c config.Log) *slog.Logger {
	l, _ := newLogger(w, isTerminal, c)
	return l
}

// What a table's owner or an emitter chose may stand in a log line, and does not control the terminal that shows it.
func TestLogCannotControlTheTerminal(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "text"} {
		var out bytes.Buffer
		logger(&out, false, config.Log{Level: "info", Format: format}).Info("failed", "error", "\u009b2J\u202eeve\x7f")
		if strings.ContainsAny(out.String(), "\u009b\u202e\x7f") {
			t.Errorf("%s: %+q", format, out.String())
		}
	}
}
