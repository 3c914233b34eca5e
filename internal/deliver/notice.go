package deliver

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/sink"
)

// Notice opens or closes a finding for the operator.
type Notice struct {
	Kind    string // route_misconfigured, or one of breakerKinds
	Subject string // code of the route
	Detail  string // empty: the finding closes
	Message string // what the target said; it may quote a payload
}

// Gone is a target that will never accept anything again, in its own words.
type Gone struct {
	Route  int32
	Detail string
}

// notices are what has changed since the last Report.
type notices struct {
	known map[Notice]bool      // true: open; keyed without detail and message
	told  map[Notice]time.Time // when those that are open were told last
	fresh []Notice             // in the order in which they happened
}

func newNotices() notices { return notices{known: map[Notice]bool{}, told: map[Notice]time.Time{}} }

// tellAgain is how often at most the finding of a breaker is told again while it goes on: its end may have been recorded meanwhile,
// as a pause of the route does.
const tellAgain = time.Minute

func (n *notices) open(kind, subject, detail, message string) {
	if at := (Notice{Kind: kind, Subject: subject}); !n.known[at] {
		n.known[at], n.told[at] = true, time.Now()
		n.fresh = append(n.fresh, Notice{kind, subject, detail, message})
	}
}

// goesOn has the open findings of a route told again whose breaker has tripped since they were told: one delivery was tried, and
// failed.
func (n *notices) goesOn(r *route, shared bool) {
	for _, kind := range breakerKinds {
		at := Notice{Kind: kind, Subject: r.row.RouteCode}
		if n.known[at] && r.queue.breaker.tripped.Load() > n.told[at].UnixNano() && (shared || time.Since(n.told[at]) >= tellAgain) {
			delete(n.known, at)
		}
	}
}

// close also closes a finding that this instance never opened: another instance may have opened it. So the first close
// of each kind and subject is always reported.
func (n *notices) close(kind, subject string) {
	at := Notice{Kind: kind, Subject: subject}
	if open, seen := n.known[at]; open || !seen {
		n.known[at] = false
		n.fresh = append(n.fresh, at)
	}
}

// breakerKinds are the reasons for which the breaker of a route is open: one at a time.
var breakerKinds = [...]string{"target_down", "credentials_refused", "two_copies"}

// openOne closes the findings of the other breakerKinds, and opens that of this kind.
func (n *notices) openOne(kind, subject, detail, message string) {
	for _, k := range breakerKinds {
		if k != kind {
			n.close(k, subject)
		}
	}
	n.open(kind, subject, detail, message)
}

// note compares the state of a route with the findings that are open. Of a shared route, other shards find things too: what this one
// has not found it closes only after a delivery of its own.
func (n *notices) note(r *route, shared bool) {
	code := r.row.RouteCode
	switch {
	case r.queue != nil:
		n.close("route_misconfigured", code)
		switch r.queue.breaker.state() {
		case gobreaker.StateOpen:
			n.goesOn(r, shared)
			reason, said, refused := r.queue.latestFailure()
			if reason == "timeout" {
				reason = fmt.Sprintf("timeout (%s)", r.queue.timeout)
			}
			switch {
			case refused && reason == sink.CodeCopy:
				n.openOne("two_copies", code, "its target gets events of another copy of this database too, and refuses ours", said)
			case refused:
				n.openOne("credentials_refused", code, fmt.Sprintf("its target refuses the credentials: %s; %s, in use by this daemon since %s",
					reason, credentials(r.row), r.queue.opened.UTC().Format(time.DateTime+" UTC")), said)
			default:
				n.openOne("target_down", code, "its target fails, and is left alone for a while: "+reason, said)
			}
		case gobreaker.StateClosed:
			for _, k := range breakerKinds {
				if !shared || n.known[Notice{Kind: k, Subject: code}] || r.queue.breaker.delivered() {
					n.close(k, code)
				}
			}
		case gobreaker.StateHalfOpen: // the next delivery decides
		}
	case r.broken.err != nil:
		n.open("route_misconfigured", code, r.broken.err.Error(), "")
	}
}

// credentials names what a route signs in with: never a value, which options do not have.
func credentials(r store.Route) string {
	var o struct {
		Secret     string                     `json:"secret"`
		Headers    map[string]json.RawMessage `json:"headers"`
		Connection string                     `json:"connection"`
	}
	_ = json.Unmarshal(r.Options, &o) // what cannot be read names none
	switch {
	case o.Connection != "":
		return fmt.Sprintf("the connection %q signs in", o.Connection)
	case r.TargetKind == "kafka" || r.TargetKind == "nats":
		return fmt.Sprintf("the connection of kind %s signs in", r.TargetKind)
	}
	var named []string
	if o.Secret != "" {
		named = append(named, fmt.Sprintf("the secret %q signs", o.Secret))
	}
	for _, header := range slices.Sorted(maps.Keys(o.Headers)) {
		var h struct {
			Secret string `json:"secret"`
		}
		if json.Unmarshal(o.Headers[header], &h) == nil && h.Secret != "" {
			named = append(named, fmt.Sprintf("the header %s is the secret %q", header, h.Secret))
		}
	}
	if len(named) == 0 {
		return "the route names no secret"
	}
	return strings.Join(named, ", ")
}

// Notices returns the changes since the last call.
func (d *Deliverer) Notices() []Notice {
	d.mu.Lock()
	defer d.mu.Unlock()
	fresh := d.notices.fresh
	d.notices.fresh = nil
	return fresh
}

// Gone returns the targets that have gone since the last call.
func (d *Deliverer) Gone() []Gone {
	d.mu.Lock()
	defer d.mu.Unlock()
	var gone []Gone
	for id, r := range d.routes {
		if r.queue != nil {
			if detail := r.queue.takeGone(); detail != "" {
				gone = append(gone, Gone{id, detail})
			}
		}
	}
	return gone
}

// Report writes the notices to the database as findings and switches off the routes of gone targets. A notice that
// cannot be written is kept for the next call, with the later ones of its subject behind it: a target that went down and
// came back must not be left as down.
func (d *Deliverer) Report(ctx context.Context, c *store.Cursor) {
	var kept []Notice
	untold := map[Notice]bool{}
	for _, n := range d.Notices() {
		at := Notice{Kind: n.Kind, Subject: n.Subject}
		if untold[at] || c.HeldFinding(ctx, n.Kind, n.Subject, n.Detail, n.Message) != nil {
			untold[at] = true
			kept = append(kept, n)
		}
	}
	d.mu.Lock()
	d.notices.fresh = append(kept, d.notices.fresh...)
	d.mu.Unlock()
	for _, g := range d.Gone() {
		_ = c.RouteGone(ctx, g.Route, g.Detail) // on an error, the next refused event reports it again
	}
}
