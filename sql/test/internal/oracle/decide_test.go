package oracle_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemarkhq/tidemark/sql/test/internal/oracle"
)

var open = oracle.Gates{Master: true, Worker: true, Armed: true}

func event() oracle.Event {
	return oracle.Event{Domain: "shop", Type: "order.paid", Payload: json.RawMessage(`{"n": 1}`)}
}

// live is a route that claims event() and delivers it.
func live(id int32, change ...func(*oracle.Route)) oracle.Route {
	r := oracle.Route{
		ID: id, Worker: "default", Domain: "shop", Type: "*", TargetKind: "sql", TargetRef: "app.target",
		Enabled: true, FailClosed: true,
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

func exclusive(r *oracle.Route)  { r.Exclusive = true }
func off(r *oracle.Route)        { r.Enabled = false }
func dry(r *oracle.Route)        { r.DryRun = true }
func openFail(r *oracle.Route)   { r.FailClosed = false }
func strange(r *oracle.Route)    { r.TargetKind = "pigeon" }
func otherOwner(r *oracle.Route) { r.Worker = "other" }
func elsewhere(r *oracle.Route)  { r.TargetRef = "app.another" }
func unreadable(r *oracle.Route) { r.RetryPolicy = json.RawMessage(`{"max_attempts": 0}`) }
func unrelated(r *oracle.Route)  { r.Domain = "bank" }

// contract is the decision contract, row by row.
var contract = map[string]struct {
	routes []oracle.Route
	gates  oracle.Gates
	want   []oracle.Decision
}{
	"no route":             {nil, open, noRoute},
	"no route that claims": {[]oracle.Route{live(1, unrelated)}, open, noRoute},
	"another worker's":     {[]oracle.Route{live(1, otherOwner)}, open, noRoute},
	"live":                 {[]oracle.Route{live(1)}, open, []oracle.Decision{{1, oracle.Pending, ""}}},
	"dry run":              {[]oracle.Route{live(1, dry)}, open, []oracle.Decision{{1, oracle.DryRun, ""}}},
	"disabled":             {[]oracle.Route{live(1, off)}, open, []oracle.Decision{{1, oracle.Disabled, ""}}},
	"in the order of ids": {
		[]oracle.Route{live(3), live(1, dry), live(2, off)},
		open,
		[]oracle.Decision{{1, oracle.DryRun, ""}, {2, oracle.Disabled, ""}, {3, oracle.Pending, ""}},
	},

	"unknown target kind": {[]oracle.Route{live(1, strange)}, open, []oracle.Decision{{1, oracle.Failed, oracle.UnknownTargetKind}}},
	"the same in dry run": {[]oracle.Route{live(1, strange, dry)}, open, []oracle.Decision{{1, oracle.Failed, oracle.UnknownTargetKind}}},
	"the same, disabled":  {[]oracle.Route{live(1, strange, off)}, open, []oracle.Decision{{1, oracle.Disabled, ""}}},
	"the same, fails open": {
		[]oracle.Route{live(1, strange, openFail)},
		open,
		[]oracle.Decision{{1, oracle.Skipped, oracle.UnknownTargetKind}},
	},
	"unreadable retry policy": {[]oracle.Route{live(1, unreadable)}, open, []oracle.Decision{{1, oracle.Failed, oracle.BadRetryPolicy}}},
	"the kind comes first": {
		[]oracle.Route{live(1, unreadable, strange), live(2, strange, exclusive)},
		open,
		[]oracle.Decision{{1, oracle.Failed, oracle.UnknownTargetKind}, {2, oracle.Failed, oracle.UnknownTargetKind}},
	},

	"ambiguous": {
		[]oracle.Route{live(1, exclusive), live(2)},
		open,
		[]oracle.Decision{{1, oracle.Failed, oracle.AmbiguousRoute}, {2, oracle.Failed, oracle.AmbiguousRoute}},
	},
	"one of the two fails open": {
		[]oracle.Route{live(1, exclusive), live(2, openFail)},
		open,
		[]oracle.Decision{{1, oracle.Failed, oracle.AmbiguousRoute}, {2, oracle.Skipped, oracle.AmbiguousRoute}},
	},
	"nobody is exclusive":   {[]oracle.Route{live(1), live(2)}, open, []oracle.Decision{{1, oracle.Pending, ""}, {2, oracle.Pending, ""}}},
	"different targets":     {[]oracle.Route{live(1, exclusive), live(2, elsewhere)}, open, []oracle.Decision{{1, oracle.Pending, ""}, {2, oracle.Pending, ""}}},
	"the other is disabled": {[]oracle.Route{live(1, exclusive), live(2, off)}, open, []oracle.Decision{{1, oracle.Pending, ""}, {2, oracle.Disabled, ""}}},
	"the other claims something else": {
		[]oracle.Route{live(1, exclusive), live(2, unrelated)}, open, []oracle.Decision{{1, oracle.Pending, ""}},
	},
	"the other is in dry run, and sees what would happen": {
		[]oracle.Route{live(1, exclusive), live(2, dry)},
		open,
		[]oracle.Decision{{1, oracle.Pending, ""}, {2, oracle.Failed, oracle.AmbiguousRoute}},
	},
	"both are in dry run": {
		[]oracle.Route{live(1, exclusive, dry), live(2, dry)},
		open,
		[]oracle.Decision{{1, oracle.Failed, oracle.AmbiguousRoute}, {2, oracle.Failed, oracle.AmbiguousRoute}},
	},
	"beside another worker's": {
		[]oracle.Route{live(1), live(2, exclusive, otherOwner)},
		open,
		[]oracle.Decision{{1, oracle.Failed, oracle.AmbiguousRoute}},
	},

	"master gate closed": {[]oracle.Route{live(1)}, oracle.Gates{Worker: true, Armed: true}, nil},
	"worker gate closed": {[]oracle.Route{live(1)}, oracle.Gates{Master: true, Armed: true}, nil},
	"not armed":          {[]oracle.Route{live(1), live(2, dry)}, oracle.Gates{Master: true, Worker: true}, nil},
	"not armed, for a live route that does not claim it": {
		[]oracle.Route{live(1, unrelated), live(2, dry)}, oracle.Gates{Master: true, Worker: true}, nil,
	},
	"domain closed": {
		[]oracle.Route{live(1), live(2, dry), live(3, off), live(4, strange)},
		oracle.Gates{Master: true, Worker: true, Armed: true, Closed: []string{"bank", "shop"}},
		[]oracle.Decision{{1, oracle.Pending, oracle.DomainClosed}, {2, oracle.DryRun, ""}, {3, oracle.Disabled, ""}, {4, oracle.Failed, oracle.UnknownTargetKind}},
	},
	"another domain closed": {
		[]oracle.Route{live(1)}, oracle.Gates{Master: true, Worker: true, Armed: true, Closed: []string{"bank"}}, []oracle.Decision{{1, oracle.Pending, ""}},
	},
	"not armed, dry runs only": {
		[]oracle.Route{live(1, dry), live(2, off), live(3, otherOwner)},
		oracle.Gates{Master: true, Worker: true},
		[]oracle.Decision{{1, oracle.DryRun, ""}, {2, oracle.Disabled, ""}},
	},
}

var noRoute = []oracle.Decision{{Outcome: oracle.Skipped, Reason: oracle.NoRoute}}

// RO6, RO7.
func TestDecide(t *testing.T) {
	t.Parallel()
	for name, c := range contract {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, oracle.Decide("default", event(), c.routes, c.gates)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestDecideLeavesItsArgumentsAlone(t *testing.T) {
	t.Parallel()
	routes := []oracle.Route{live(2), live(1, dry)}
	oracle.Decide("default", event(), routes, open)
	if diff := cmp.Diff([]oracle.Route{live(2), live(1, dry)}, routes); diff != "" {
		t.Errorf("routes were changed (-before +after)\n%s", diff)
	}
}
