package main

import (
	"strings"
	"testing"
	"time"
)

func TestAlign(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := &printer{out: &out}
	type row struct{ a, b string }
	err := rows(p, "", []row{{"é", "x"}, {"two\nlines\tand \x1b[31mred", ""}},
		column[row]{"A", func(r row) string { return r.a }}, column[row]{"B", func(r row) string { return r.b }})
	want := "" +
		"A                       B\n" +
		"é                       x\n" +
		"two lines and ·[31mred\n"
	if out.String() != want || err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	p := &printer{now: now}
	for want, ago := range map[string]time.Duration{
		"0s ago": -time.Second, "59s ago": 59 * time.Second, "1m ago": 119 * time.Second, "23h ago": 23 * time.Hour,
		"47h ago": 47*time.Hour + 59*time.Minute, "3d ago": 80 * time.Hour,
	} {
		if got := p.age(now.Add(-ago)); got != want {
			t.Errorf("%s: got %s, want %s", ago, got, want)
		}
	}
}

func TestWhen(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"": {}, "90m": now.Add(-90 * time.Minute), "24h": now.AddDate(0, 0, -1), "7d": now.AddDate(0, 0, -7),
		"2026-01-01T00:00:00+01:00": time.Date(2025, 12, 31, 23, 0, 0, 0, time.UTC),
	} {
		if got, err := when("since", text, now); !got.Equal(want) || err != nil {
			t.Errorf("%q: got %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"yesterday", "7", "-1h", "1.5d", "d", "2d3", "2026-01-01"} {
		if got, err := when("since", text, now); err == nil {
			t.Errorf("%q: got %s", text, got)
		}
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	if got := cut("éééé", 4) + cut("ééééé", 4); got != "éééé"+"ééé…" {
		t.Error(got)
	}
}
