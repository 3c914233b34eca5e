package test

import (
	"fmt"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A step of the server's clock is what its clock and a daemon's differ by more than before. A late beat is none.
func TestClockStep(t *testing.T) {
	t.Parallel()
	// How far the server's clock goes between two beats, and the daemon's, in seconds.
	type beat struct {
		server, daemon float64
		instance       string
	}
	for name, c := range map[string]struct {
		beats []beat
		want  []string
	}{
		"none":                       {[]beat{{10, 10, ""}, {10, 10, ""}, {600, 600, ""}}, nil},
		"late beats":                 {[]beat{{38, 10, ""}, {10, 10, ""}, {0, 28, ""}, {10, 10, ""}}, nil},
		"one very late beat":         {[]beat{{130, 10, ""}, {0, 120, ""}, {10, 10, ""}}, nil},
		"forward":                    {[]beat{{3610, 10, ""}, {10, 10, ""}, {10, 10, ""}}, []string{"01:00:00"}},
		"back":                       {[]beat{{-3590, 10, ""}, {10, 10, ""}}, []string{"-01:00:00"}},
		"back, and forward again":    {[]beat{{-3590, 10, ""}, {100, 100, ""}, {3610, 10, ""}, {10, 10, ""}}, []string{"00:00:00"}},
		"slewed":                     {[]beat{{20, 10, ""}, {20, 10, ""}, {20, 10, ""}, {20, 10, ""}, {20, 10, ""}}, nil},
		"another start":              {[]beat{{3610, 10, "b"}, {10, 10, "b"}}, nil},
		"a daemon of before uptimes": {[]beat{{10, -1, ""}, {3610, 3610, ""}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, tidemarktest.NewDB(t), "app")
			up := 1000.0
			beats := func(instance string) {
				payload := fmt.Sprintf(`{"instance": "a%s", "uptime": %g}`, instance, up)
				if up < 0 {
					payload = `{"instance": "a"}`
				}
				s.exec(`select tidemark.heartbeat_daemon('d', 'running', $1)`, payload)
			}
			beats("")
			for _, b := range c.beats {
				// The server's clock cannot be set: its difference from the daemon's changes as if it had been.
				if up += b.daemon; b.daemon < 0 {
					up = b.daemon
				}
				s.exec(`update tidemark.heartbeat set payload = payload
					|| coalesce(jsonb_build_object('clock', (payload ->> 'clock')::numeric - $1::numeric), '{}')
					|| case when payload ? 'clock_next' then jsonb_build_object('clock_next', (payload ->> 'clock_next')::numeric - $1::numeric) else '{}' end`, b.server)
				s.exec(`update tidemark.clock_step set at = at - make_interval(secs => $1)`, b.server)
				beats(b.instance)
				if b.daemon < 0 {
					up = 1000
				}
			}
			s.wantRows(`select step::text from tidemark.clock_step where settled_at is null`, c.want...)
		})
	}
}
