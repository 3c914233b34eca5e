package console

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// chart is lines over time. The server draws them; a browser with JavaScript draws them again, with axes and values.
type chart struct {
	Title    string
	From, To time.Time
	Width    int // of the drawing: a unit for each step. Its height is chartHeight.
	Lines    []line
	Data     string // of all this, for the browser
}

type line struct {
	Name, Class string
	Total       *int64 // of the whole time; null: a sum of these says nothing
	Peak        int64
	Path        string // of SVG
	values      []*int64
}

const chartHeight = 100

// period is a time that charts show.
type period struct {
	Hours string
	Name  string
}

var periods = []period{{"1", "hour"}, {"24", "24 hours"}, {"168", "7 days"}}

// history is what a page shows of the past.
type history struct {
	Hours   string
	Periods []period
	Charts  []chart
}

// charts are those of a history; of a route it has no emitted events. The last step is not over yet: it is left out.
func charts(steps []store.HistoryStep, hours string) history {
	h := history{Hours: hours, Periods: periods}
	if len(steps) < 3 {
		return h
	}
	steps = steps[:len(steps)-1]
	of := func(name, class string, sums bool, value func(store.HistoryStep) *int64) line {
		l := line{Name: name, Class: class}
		var total int64
		for _, s := range steps {
			v := value(s)
			l.values = append(l.values, v)
			if v != nil {
				total, l.Peak = total+*v, max(l.Peak, *v)
			}
		}
		if sums {
			l.Total = &total
		}
		return l
	}
	emitted := of("Emitted", "emitted", true, func(s store.HistoryStep) *int64 { return s.Emitted })
	sent := of("Sent", "sent", true, func(s store.HistoryStep) *int64 { return &s.Sent })
	recorded := of("Recorded only", "recorded", true, func(s store.HistoryStep) *int64 { return &s.Recorded })
	retried := of("Tried again", "retried", true, func(s store.HistoryStep) *int64 { return &s.Retried })
	failed := of("Dead letters", "failed", true, func(s store.HistoryStep) *int64 { return &s.Failed })
	waiting := of("Waiting", "waiting", false, func(s store.HistoryStep) *int64 { return s.Waiting })
	flow := []line{sent}
	for _, l := range []line{emitted, recorded} {
		if l.Peak > 0 {
			flow = append(flow, l)
		}
	}
	step := steps[1].At.Sub(steps[0].At)
	every := map[time.Duration]string{time.Minute: "a minute", 5 * time.Minute: "in 5 minutes", time.Hour: "an hour"}[step]
	h.Charts = []chart{
		draw("Events "+every, steps, flow), draw("Failures "+every, steps, []line{retried, failed}), draw("Waiting, at most", steps, []line{waiting}),
	}
	return h
}

// draw makes a chart of the lines.
func draw(title string, steps []store.HistoryStep, lines []line) chart {
	step := steps[1].At.Sub(steps[0].At)
	c := chart{Title: title, From: steps[0].At, To: steps[len(steps)-1].At.Add(step), Width: len(steps) - 1, Lines: lines}
	var top int64 = 1
	for _, l := range lines {
		top = max(top, l.Peak)
	}
	data := map[string]any{"from": c.From.Unix(), "step": int64(step.Seconds())}
	named := make([]map[string]any, len(lines))
	for i := range lines {
		l := &lines[i]
		l.Path = path(l.values, top)
		named[i] = map[string]any{"name": l.Name, "class": l.Class, "values": l.values}
	}
	data["lines"] = named
	text, _ := json.Marshal(data) // numbers and names: it cannot fail
	c.Data = string(text)
	return c
}

// path is a line of SVG: up to top, with a gap where a value is not known.
func path(values []*int64, top int64) string {
	var b strings.Builder
	to := "M"
	for x, v := range values {
		if v == nil {
			to = "M"
			continue
		}
		fmt.Fprintf(&b, "%s%d %d", to, x, chartHeight-*v*chartHeight/top)
		to = "L"
	}
	return b.String()
}
