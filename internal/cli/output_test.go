package cli

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestTable(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := &Printer{Out: &out}
	type row struct{ a, b string }
	all := []row{{"é", "x"}, {"two\nlines\tand \x1b[31mred", ""}}
	err := Table(p, "", all, "A|B", func(r row) Row { return Row{r.a, &r.b} })
	want := "" +
		"A                       B\n" +
		"é                       x\n" +
		"two lines and ·[31mred\n"
	if out.String() != want || err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// On a terminal the widest cells give way; elsewhere lines have any length.
func TestTableFitsTheTerminal(t *testing.T) {
	t.Parallel()
	type row struct{ name, detail string }
	all := []row{{"billing", strings.Repeat("long ", 10)}, {"a name of some length", "short"}}
	for width, longest := range map[int]int{0: 72, 60: 60, 40: 40, 10: 26} {
		var out strings.Builder
		if err := Table(&Printer{Out: &out, width: width}, "", all, "NAME|DETAIL", func(r row) Row { return Row{r.name, r.detail} }); err != nil {
			t.Fatal(err)
		}
		widest := 0
		for line := range strings.Lines(out.String()) {
			widest = max(widest, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
		}
		if widest > longest || width > 0 && !strings.Contains(out.String(), "…") {
			t.Errorf("width %d: %d\n%s", width, widest, out.String())
		}
	}
}

func TestFactsWrapOnATerminal(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := &Printer{Out: &out, width: 34}
	p.Facts("means", "a sentence that is longer than the line", "empty", "", "payload", `{"a": "JSON is left as it is, to copy"}`)
	want := "means    a sentence that is longer\n" +
		"         than the line\n" +
		"payload  {\"a\": \"JSON is left as it is, to copy\"}\n"
	if out.String() != want {
		t.Error(out.String())
	}
}

func TestCells(t *testing.T) {
	t.Parallel()
	at, n, text := time.Date(2026, 1, 31, 12, 0, 0, 0, time.FixedZone("", 3600)), int64(7), "x"
	var none *string
	for want, value := range map[string]any{
		"": none, "x": &text, "7": &n, "yes": true, "no": new(bool), "a, b": []string{"a", "b"}, "2026-01-31 11:00:00 UTC": &at, "{}": json.RawMessage("{}"), "0.1": 0.1,
	} {
		if got := Cell(value); got != want {
			t.Errorf("%v: %q, want %q", value, got, want)
		}
	}
}

func TestFieldsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	(&Printer{Out: &out}).Object(Fields{"worker", "<w>", "a", nil, "n", []int{1}})
	if out.String() != `{"worker":"<w>","a":null,"n":[1]}`+"\n" {
		t.Error(out.String())
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestTheFirstWriteErrorIsKept(t *testing.T) {
	t.Parallel()
	p := &Printer{Out: full{}}
	p.Line("x")
	p.Facts("a", "b")
	if err := p.Result(nil, "x"); err == nil || err.Error() != "disk full" {
		t.Error(err)
	}
}

func TestPaint(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := &Printer{Out: &out, colour: true}
	p.align([][]string{{"STATUS", "WHAT"}, {"bad", "x"}, {"ok"}, {"other", "bad"}})
	if want := "STATUS  WHAT\n\x1b[31mbad\x1b[0m     x\n\x1b[32mok\x1b[0m\nother  bad\n"; out.String() != want {
		t.Errorf("got %q", out.String())
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	p := &Printer{Now: now}
	for want, ago := range map[string]time.Duration{
		"0s ago": -time.Second, "59s ago": 59 * time.Second, "1m ago": 119 * time.Second, "23h ago": 23 * time.Hour,
		"47h ago": 47*time.Hour + 59*time.Minute, "3d ago": 80 * time.Hour,
	} {
		if got := p.Age(now.Add(-ago)); got != want {
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
		if got, err := (Time{"since", text}).At(now); !got.Equal(want) || err != nil {
			t.Errorf("%q: got %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"yesterday", "7", "-1h", "1.5d", "d", "2d3", "2026-01-01"} {
		if got, err := (Time{"since", text}).At(now); err == nil {
			t.Errorf("%q: got %s", text, got)
		}
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	if got := Cut("éééé", 4) + Cut("ééééé", 4); got != "éééé"+"ééé…" {
		t.Error(got)
	}
}

// What an emitter put into an event is the same value in JSON, and does not control the terminal that shows it.
func TestObjectCannotControlTheTerminal(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	(&Printer{Out: &out}).Object(map[string]string{"actor": "\u009b2J\u202eeve\x7f · ünï"})
	if want := `{"actor":"\u009b2J\u202eeve\u007f · ünï"}` + "\n"; out.String() != want {
		t.Errorf("%+q, want %+q", out.String(), want)
	}
}
