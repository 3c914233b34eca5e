package worker

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

func TestVoiceSaysWhatIsNew(t *testing.T) {
	var log bytes.Buffer
	v := voice{log: slog.New(slog.NewTextHandler(&log, nil))}
	refused, gone := errors.New("connection refused"), errors.New("no such host")
	for _, err := range []error{refused, refused, gone, gone, refused, nil} {
		v.say(t.Context(), slog.LevelWarn, "cannot claim", "error", err)
	}
	v.say(t.Context(), slog.LevelInfo, "running", "epoch", int64(1), "detail", "")
	v.say(t.Context(), slog.LevelInfo, "running", "epoch", int64(1))
	v.say(t.Context(), slog.LevelInfo, "running", "epoch", int64(2))

	var got []string
	for line := range strings.Lines(log.String()) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), "msg=")
		got = append(got, rest)
	}
	want := []string{
		`"cannot claim" error="connection refused"`, `"cannot claim" error="no such host"`, `"cannot claim" error="connection refused"`, `"cannot claim"`,
		`running epoch=1`, `running epoch=2`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
