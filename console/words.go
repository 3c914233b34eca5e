package console

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// short is a number of seconds that may be a part of one.
func short(seconds float64) string {
	switch {
	case seconds < 1:
		return fmt.Sprintf("%.0f ms", seconds*1000)
	case seconds < 10:
		return fmt.Sprintf("%.1f s", seconds)
	}
	return span(time.Duration(seconds * float64(time.Second)))
}

// passOf is what people ask of a pass.
var passOf = []string{"status", "step", "events", "rows", "taken", "failed", "late", "decided", "blocked_by", "held_back_by", "detail", "gate"}

// pass tells what a pass did, from its summary.
func pass(summary json.RawMessage) string {
	o, _ := decode(summary).(object)
	var said []string
	for _, name := range passOf {
		v := o.get(name)
		switch value := text(v); {
		case none(v) || value == "0":
		case name == "status" || name == "step" || name == "detail":
			said = append(said, value)
		default:
			said = append(said, strings.ToLower(label(name))+" "+value)
		}
	}
	return strings.Join(said, ", ")
}

// verified is how far a cursor of a table has come, as a bar that ends now: in thousandths of it, the time whose rows were counted, and
// the time whose rows were read.
type verified struct {
	Counted, Read int
	From          time.Time
	At            *time.Time // up to where rows were counted
	Says          string
}

// barSpan is how much time a bar shows, if nothing is behind for longer than half of it.
const barSpan = 7 * 24 * time.Hour

func verifiedOf(counted, read *time.Time) *verified {
	if counted == nil {
		return nil
	}
	shown := max(barSpan, 2*time.Since(*counted))
	part := func(at *time.Time) int {
		if at == nil {
			return 0
		}
		return int(math.Round(1000 * (1 - max(time.Since(*at), 0).Seconds()/shown.Seconds())))
	}
	v := verified{Counted: part(counted), Read: max(part(counted), part(read)), From: time.Now().Add(-shown), At: counted}
	v.Says = fmt.Sprintf("Of the time from %s ago until now rows are counted up to %d%%, and read up to %d%%", span(shown), v.Counted/10, v.Read/10)
	return &v
}

// opened tells how many gates are open.
func opened(gates []store.Gate) string {
	n := 0
	for _, g := range gates {
		if g.Open {
			n++
		}
	}
	return fmt.Sprintf("%s of %s gates open", num(n), num(len(gates)))
}

// promises are what the safeties of sources promise.
var promises = map[string]string{
	"sequence": "every committed row is read, however late it commits",
	"clock":    "every committed row is read, if the server sets its timestamp in the transaction that inserts it, and no one changes it",
	"capture":  "every row that is inserted from the attaching of the trigger on is read",
	"declared": "a row that comes up to the sweep window late is read; a later one is not read, and noticed by the count only if it comes before its bucket is verified",
}

// someCursors are those that a page of a worker shows: a page has at most 100 KB.
func someCursors(all []store.SourceCursor) []store.SourceCursor { return all[:min(len(all), 40)] }

// anyCounted tells whether the rows of a table are counted for one of these cursors.
func anyCounted(all []store.WorkerSummary) bool {
	return slices.ContainsFunc(all, func(w store.WorkerSummary) bool { return w.VerifiedThrough != nil })
}

// paused tells whether some cursor is paused, or is not.
func paused(leases []store.Lease, want bool) bool {
	return slices.ContainsFunc(leases, func(l store.Lease) bool { return (l.Paused != nil) == want })
}

// claimed is who a command claims to be from; empty: its envelope is not there.
func claimed(envelope json.RawMessage) string {
	var e struct{ Producer string }
	if json.Unmarshal(envelope, &e) != nil {
		return ""
	}
	return e.Producer
}

// most is a number that is counted to 10,000 at most.
func most(v any) string {
	if n := num(v); n != "10,000" {
		return n
	}
	return "10,000 or more"
}

// waitsFor says why what was not tried waits.
var waitsFor = map[string]string{
	"behind_key": "an earlier event of its key waits", "busy": "events come faster than the target takes them", "breaker_open": "the target fails, and is left alone for a while",
	"domain_closed": "the gate of its domain is closed", "gate_closed": "a gate is closed, or the route is paused", "misconfigured": "the route's target cannot be opened", "suspect": "it is tried alone",
}

// whyWaits is the last error of what waits, or why it was not tried.
func whyWaits(last *string) string {
	if last != nil && waitsFor[*last] != "" {
		return waitsFor[*last]
	}
	return text(last)
}

// interval is one that PostgreSQL has written, as people say it where it is below a day.
func interval(written string) string {
	var h, m int64
	var s float64
	if n, err := fmt.Sscanf(written, "%d:%d:%f", &h, &m, &s); err != nil || n != 3 {
		return visible(written)
	}
	return short(float64(h*3600+m*60) + s)
}

// lived is what became of an event, by time.
func lived(all []store.Attempt) []store.Attempt {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b store.Attempt) int { return a.DecidedAt.Compare(b.DecidedAt) })
	return all
}

// dots is a name that a browser would take for a step in the path, or one that looks like its stand-in.
var dots = regexp.MustCompile(`^\.{1,2}~*$`)

// segment is a name as a part of a page's path. A browser removes . and .. from a path, however they are written.
func segment(name string) string {
	if dots.MatchString(name) {
		name += "~"
	}
	return url.PathEscape(name)
}

// fromSegment is the name that a part of a page's path stands for.
func fromSegment(part string) string {
	if dots.MatchString(part) {
		return strings.TrimSuffix(part, "~")
	}
	return part
}

// apiSegment is a name as a part of a path of the API.
func apiSegment(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}

// waitLink leads to an act on what waits: an event on a route, or a row of a worker's source.
func (c *console) waitLink(name string, p store.PendingItem) (string, error) {
	if p.RouteCode != nil {
		return c.actLink(name, "route", p.RouteCode, "item", p.Item)
	}
	return c.actLink(name, "worker", p.Worker, "source", p.Source, "item", p.Item)
}
