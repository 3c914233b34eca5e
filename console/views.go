package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemarkhq/tidemark/internal/api"
	"github.com/tidemarkhq/tidemark/internal/store"
)

type cause = store.Cause

// view is a page: its template, and how it reads what it shows.
type view struct {
	template string
	title    func(*http.Request) string
	read     func(query) (any, *api.Problem)
}

func titled(text string) func(*http.Request) string {
	return func(*http.Request) string { return text }
}

// named is the title of a page about one thing, whose name is in its path.
func named(kind, parameter string) func(*http.Request) string {
	return func(r *http.Request) string { return kind + " " + r.PathValue(parameter) }
}

// simple reads one resource.
func simple[T any](path string, parameters ...string) func(query) (any, *api.Problem) {
	return func(q query) (any, *api.Problem) {
		var params []string
		for _, name := range parameters {
			params = append(params, name, q.param(name))
		}
		v, p := get[T](q, path, params...)
		return v, p
	}
}

// both is what a page shows that reads several resources.
type both map[string]any

// read adds a resource to what a page shows.
func read[T any](q query, into both, name, path string, params ...string) *api.Problem {
	v, p := get[T](q, path, params...)
	into[name] = v
	return p
}

// all runs readings until one fails.
func all(into both, readings ...func() *api.Problem) (any, *api.Problem) {
	for _, r := range readings {
		if p := r(); p != nil {
			return nil, p
		}
	}
	return into, nil
}

// views are the pages by path.
var views = map[string]view{
	"/{$}": {"overview", titled("Overview"), func(q query) (any, *api.Problem) {
		o, p := get[api.Overview](q, "/status")
		if p == nil {
			person, _ := api.PersonOf(q.r.Context())
			q.c.last.set(person.Role, o)
		}
		return busiest(o), p
	}},
	"/routes": {"routes", titled("Routes"), func(q query) (any, *api.Problem) {
		v := both{"Filter": q.r.URL.Query()}
		routes, p := get[[]store.Route](q, "/routes")
		if p != nil {
			return nil, p
		}
		v["Routes"], v["Next"] = routePage(routes, q.param("q"), q.param("after"))
		return v, readOverview(q, v)
	}},
	"/routes/{route}": {"route", named("Route", "route"), func(q query) (any, *api.Problem) {
		v, route := both{}, url.PathEscape(q.r.PathValue("route"))
		return all(v,
			func() *api.Problem { return read[store.Route](q, v, "Route", "/routes/"+route) },
			func() *api.Problem { return readOverview(q, v) },
			func() *api.Problem {
				return read[[]store.RouteReplayed](q, v, "Replays", "/replays", "route", q.r.PathValue("route"))
			},
			func() *api.Problem {
				return read[[]store.PendingItem](q, v, "Pending", "/pending", "route", q.r.PathValue("route"), "limit", "10")
			},
			func() *api.Problem {
				return read[api.List[store.DeadLetter]](q, v, "Letters", "/dead-letters", "route", q.r.PathValue("route"), "limit", "10")
			},
			func() *api.Problem {
				return read[api.List[store.AuditEntry]](q, v, "Audit", "/audit", "object", "outbound_route "+q.r.PathValue("route"), "limit", "10")
			},
			func() *api.Problem {
				if q.param("backtest") == "" {
					return nil
				}
				return read[[]store.BacktestGroup](q, v, "Backtest", "/routes/"+route+"/backtest")
			})
	}},
	"/events": {"events", titled("Events"), func(q query) (any, *api.Problem) {
		v := both{}
		return all(v, func() *api.Problem {
			return read[api.List[store.StoredEvent]](q, v, "Events", "/events", "domain", q.param("domain"), "type", q.param("type"),
				"key", q.param("key"), "stream", q.param("stream"), "before", q.param("before"))
		}, func() *api.Problem { v["Filter"] = q.r.URL.Query(); return nil })
	}},
	"/events/{event}": {"event", named("Event", "event"), func(q query) (any, *api.Problem) {
		v, event := both{"Asked": q.param("why")}, url.PathEscape(q.r.PathValue("event"))
		return all(v,
			func() *api.Problem { return read[api.EventDetails](q, v, "Event", "/events/"+event) },
			func() *api.Problem { return read[[]store.Route](q, v, "Routes", "/routes") },
			func() *api.Problem {
				if q.param("why") == "" {
					return nil
				}
				return read[api.Explained](q, v, "Why", "/events/"+event+"/why", "route", q.param("why"))
			})
	}},
	"/waiting": {"waiting", titled("Waiting"), func(q query) (any, *api.Problem) {
		v := both{"Filter": q.r.URL.Query()}
		return all(v, func() *api.Problem {
			return read[[]store.PendingItem](q, v, "Pending", "/pending", "route", q.param("route"), "limit", "100")
		})
	}},
	"/dead-letters": {"letters", titled("Dead letters"), func(q query) (any, *api.Problem) {
		v := both{"Filter": q.r.URL.Query()}
		return all(v,
			func() *api.Problem { return read[[]store.LetterGroup](q, v, "Groups", "/dead-letter-groups") },
			func() *api.Problem {
				return read[api.List[store.DeadLetter]](q, v, "Letters", "/dead-letters", "route", q.param("route"), "source", q.param("source"),
					"code", q.param("code"), "before", q.param("before"), "resolved", q.param("resolved"))
			})
	}},
	"/dead-letters/{id}": {"letter", named("Dead letter", "id"), func(q query) (any, *api.Problem) {
		v, p := get[api.LetterDetails](q, "/dead-letters/"+url.PathEscape(q.r.PathValue("id")))
		return v, p
	}},
	"/workers": {"workers", titled("Workers"), simple[[]store.WorkerSummary]("/workers")},
	"/workers/{worker}": {"worker", named("Worker", "worker"), func(q query) (any, *api.Problem) {
		v, p := get[api.WorkerDetails](q, "/workers/"+url.PathEscape(q.r.PathValue("worker")))
		return v, p
	}},
	"/sources": {"sources", titled("Tables and capture"), func(q query) (any, *api.Problem) {
		v := both{}
		return all(v,
			func() *api.Problem { return read[[]store.Source](q, v, "Sources", "/sources") },
			func() *api.Problem { return read[api.Captures](q, v, "Captures", "/captures") })
	}},
	"/sources/{source}": {"source", named("Source", "source"), func(q query) (any, *api.Problem) {
		v, p := get[api.SourceDetails](q, "/sources/"+url.PathEscape(q.r.PathValue("source")))
		return v, p
	}},
	"/commands": {"services", titled("Commands"), simple[[]store.Service]("/services")},
	"/commands/{service}": {"service", named("Service", "service"), func(q query) (any, *api.Problem) {
		v, service := both{"State": q.param("state")}, q.r.PathValue("service")
		return all(v,
			func() *api.Problem {
				return read[api.ServiceDetails](q, v, "Service", "/services/"+url.PathEscape(service))
			},
			func() *api.Problem {
				return read[[]store.CommandClaim](q, v, "Claims", "/command-claims", "service", service, "state", q.param("state"))
			})
	}},
	"/heartbeats": {"heartbeats", titled("Heartbeats"), simple[[]store.Heartbeat]("/heartbeats")},
	"/findings": {"findings", titled("Findings"), func(q query) (any, *api.Problem) {
		v := both{}
		return all(v,
			func() *api.Problem { return read[[]store.Finding](q, v, "Open", "/findings") },
			func() *api.Problem {
				return read[[]store.Finding](q, v, "Closed", "/findings", "closed", "true", "limit", "20")
			})
	}},
	"/audit": {"audit", titled("Audit"), func(q query) (any, *api.Problem) {
		v := both{"Filter": q.r.URL.Query()}
		return all(v, func() *api.Problem {
			return read[api.List[store.AuditEntry]](q, v, "Audit", "/audit", "who", q.param("who"), "object", q.param("object"), "before", q.param("before"))
		})
	}},
	"/settings": {"settings", titled("Gates and settings"), func(q query) (any, *api.Problem) {
		v := both{}
		return all(v,
			func() *api.Problem { return read[store.Stage](q, v, "Stage", "/stage") },
			func() *api.Problem { return read[[]store.Gate](q, v, "Gates", "/gates") },
			func() *api.Problem { return read[[]store.Setting](q, v, "Settings", "/settings") },
			func() *api.Problem { return read[[]store.Domain](q, v, "Domains", "/domains") },
			func() *api.Problem { return read[[]store.EventType](q, v, "Types", "/types") },
			func() *api.Problem { return read[[]store.Pack](q, v, "Packs", "/packs") })
	}},
}

// readOverview adds how each route is doing, by its code.
func readOverview(q query, into both) *api.Problem {
	o, p := get[api.Overview](q, "/status")
	if p != nil {
		return p
	}
	byCode := map[string]store.RouteSummary{}
	for _, r := range o.Routes {
		byCode[r.RouteCode] = r
	}
	into["Summaries"], into["Stage"] = byCode, o.Stage
	if code := q.r.PathValue("route"); code != "" {
		into["Summary"] = byCode[code]
	}
	return nil
}

// rowsOfPage is how many rows a page shows of a list that the API gives whole.
const rowsOfPage = 100

// routePage is a page of routes: those whose code, domain or type has the text, after a code. next is empty at the end.
func routePage(routes []store.Route, text, after string) (page []store.Route, next string) {
	for _, r := range routes {
		if r.RouteCode <= after && after != "" || !strings.Contains(r.RouteCode+" "+r.Domain+"/"+r.Type+" "+r.TargetKind+" "+r.TargetRef, text) {
			continue
		}
		if len(page) == rowsOfPage {
			return page, page[rowsOfPage-1].RouteCode
		}
		page = append(page, r)
	}
	return page, ""
}

// routesOfOverview is how many routes the overview shows: those with most dead letters, then those with most that waits.
const routesOfOverview = 20

// busiest leaves the routes that matter first, and the workers.
func busiest(o api.Overview) api.Overview {
	o.Routes = slices.Clone(o.Routes) // what others share stays as it is
	slices.SortStableFunc(o.Routes, func(a, b store.RouteSummary) int {
		return cmp.Or(cmp.Compare(b.OpenDeadLetters, a.OpenDeadLetters), cmp.Compare(b.Pending, a.Pending), cmp.Compare(rank(a.State), rank(b.State)))
	})
	o.Routes = o.Routes[:min(len(o.Routes), routesOfOverview)]
	o.Workers = o.Workers[:min(len(o.Workers), rowsOfPage)]
	return o
}

// rank puts routes that deliver before those that do not.
func rank(state string) int {
	switch state {
	case "live":
		return 0
	case "dry run":
		return 1
	}
	return 2
}

// number reads a number of a form; empty or malformed: 0.
func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}
