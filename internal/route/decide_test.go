package route_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemarkhq/tidemark/internal/route"
)

var open = route.Gates{Master: true, Worker: true, Armed: true}

func event() route.Event {
	return route.Event{Domain: "shop", Type: "order.paid", Payload: json.RawMessage(`{"n": 1}`)}
}

// live is a route that claims event() and delivers it.
func live(id int32, change ...func(*route.Route)) route.Route {
	r := route.Route{
		ID: id, Worker: "default", Domain: "shop", Type: "*", TargetKind: "sql", TargetRef: "app.target",
		Enabled: true, FailClosed: true,
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

func exclusive(r *route.Route)  { r.Exclusive = true }
func off(r *route.Route)        { r.Enabled = false }
func dry(r *route.Route)        { r.DryRun = true }
func openFail(r *route.Route)   { r.FailClosed = false }
func strange(r *route.Route)    { r.TargetKind = "pigeon" }
func otherOwner(r *route.Route) { r.Worker = "other" }
func elsewhere(r *route.Route)  { r.TargetRef = "app.another" }
func unreadable(r *route.Route) { r.RetryPolicy = json.RawMessage(`{"max_attempts": 0}`) }
func unrelated(r *route.Route)  { r.Domain = "bank" }

// contract is the decision contract, row by row.
var contract = map[string]struct {
	routes []route.Route
	gates  route.Gates
	want   []route.Decision
}{
	"no route":             {nil, open, noRoute},
	"no route that claims": {[]route.Route{live(1, unrelated)}, open, noRoute},
	"another worker's":     {[]route.Route{live(1, otherOwner)}, open, noRoute},
	"live":                 {[]route.Route{live(1)}, open, []route.Decision{{1, route.Pending, ""}}},
	"dry run":              {[]route.Route{live(1, dry)}, open, []route.Decision{{1, route.DryRun, ""}}},
	"disabled":             {[]route.Route{live(1, off)}, open, []route.Decision{{1, route.Disabled, ""}}},
	"in the order of ids": {
		[]route.Route{live(3), live(1, dry), live(2, off)},
		open,
		[]route.Decision{{1, route.DryRun, ""}, {2, route.Disabled, ""}, {3, route.Pending, ""}},
	},

	"unknown target kind": {[]route.Route{live(1, strange)}, open, []route.Decision{{1, route.Failed, route.UnknownTargetKind}}},
	"the same in dry run": {[]route.Route{live(1, strange, dry)}, open, []route.Decision{{1, route.Failed, route.UnknownTargetKind}}},
	"the same, disabled":  {[]route.Route{live(1, strange, off)}, open, []route.Decision{{1, route.Disabled, ""}}},
	"the same, fails open": {
		[]route.Route{live(1, strange, openFail)},
		open,
		[]route.Decision{{1, route.Skipped, route.UnknownTargetKind}},
	},
	"unreadable retry policy": {[]route.Route{live(1, unreadable)}, open, []route.Decision{{1, route.Failed, route.BadRetryPolicy}}},
	"the kind comes first": {
		[]route.Route{live(1, unreadable, strange), live(2, strange, exclusive)},
		open,
		[]route.Decision{{1, route.Failed, route.UnknownTargetKind}, {2, route.Failed, route.UnknownTargetKind}},
	},

	"ambiguous": {
		[]route.Route{live(1, exclusive), live(2)},
		open,
		[]route.Decision{{1, route.Failed, route.AmbiguousRoute}, {2, route.Failed, route.AmbiguousRoute}},
	},
	"one of the two fails open": {
		[]route.Route{live(1, exclusive), live(2, openFail)},
		open,
		[]route.Decision{{1, route.Failed, route.AmbiguousRoute}, {2, route.Skipped, route.AmbiguousRoute}},
	},
	"nobody is exclusive":   {[]route.Route{live(1), live(2)}, open, []route.Decision{{1, route.Pending, ""}, {2, route.Pending, ""}}},
	"different targets":     {[]route.Route{live(1, exclusive), live(2, elsewhere)}, open, []route.Decision{{1, route.Pending, ""}, {2, route.Pending, ""}}},
	"the other is disabled": {[]route.Route{live(1, exclusive), live(2, off)}, open, []route.Decision{{1, route.Pending, ""}, {2, route.Disabled, ""}}},
	"the other claims something else": {
		[]route.Route{live(1, exclusive), live(2, unrelated)}, open, []route.Decision{{1, route.Pending, ""}},
	},
	"the other is in dry run, and sees what would happen": {
		[]route.Route{live(1, exclusive), live(2, dry)},
		open,
		[]route.Decision{{1, route.Pending, ""}, {2, route.Failed, route.AmbiguousRoute}},
	},
	"both are in dry run": {
		[]route.Route{live(1, exclusive, dry), live(2, dry)},
		open,
		[]route.Decision{{1, route.Failed, route.AmbiguousRoute}, {2, route.Failed, route.AmbiguousRoute}},
	},
	"beside another worker's": {
		[]route.Route{live(1), live(2, exclusive, otherOwner)},
		open,
		[]route.Decision{{1, route.Failed, route.AmbiguousRoute}},
	},

	"master gate closed": {[]route.Route{live(1)}, route.Gates{Worker: true, Armed: true}, nil},
	"worker gate closed": {[]route.Route{live(1)}, route.Gates{Master: true, Armed: true}, nil},
	"not armed":          {[]route.Route{live(1), live(2, dry)}, route.Gates{Master: true, Worker: true}, nil},
	"not armed, for a live route that does not claim it": {
		[]route.Route{live(1, unrelated), live(2, dry)}, route.Gates{Master: true, Worker: true}, nil,
	},
	"domain closed": {
		[]route.Route{live(1), live(2, dry), live(3, off), live(4, strange)},
		route.Gates{Master: true, Worker: true, Armed: true, Closed: []string{"bank", "shop"}},
		[]route.Decision{{1, route.Pending, route.DomainClosed}, {2, route.DryRun, ""}, {3, route.Disabled, ""}, {4, route.Failed, route.UnknownTargetKind}},
	},
	"another domain closed": {
		[]route.Route{live(1)}, route.Gates{Master: true, Worker: true, Armed: true, Closed: []string{"bank"}}, []route.Decision{{1, route.Pending, ""}},
	},
	"not armed, dry runs only": {
		[]route.Route{live(1, dry), live(2, off), live(3, otherOwner)},
		route.Gates{Master: true, Worker: true},
		[]route.Decision{{1, route.DryRun, ""}, {2, route.Disabled, ""}},
	},
}

var noRoute = []route.Decision{{Outcome: route.Skipped, Reason: route.NoRoute}}

// RO6, RO7.
func TestDecide(t *testing.T) {
	t.Parallel()
	for name, c := range contract {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, route.Decide("default", event(), c.routes, c.gates)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestDecideLeavesItsArgumentsAlone(t *testing.T) {
	t.Parallel()
	routes := []route.Route{live(2), live(1, dry)}
	route.Decide("default", event(), routes, open)
	if diff := cmp.Diff([]route.Route{live(2), live(1, dry)}, routes); diff != "" {
		t.Errorf("routes were changed (-before +after)\n%s", diff)
	}
}
