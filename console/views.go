package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemarkhq/tidemark/internal/api"
	"github.com/tidemarkhq/tidemark/internal/packlist"
	"github.com/tidemarkhq/tidemark/internal/store"
)

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
	return func(r *http.Request) string { return kind + " " + fromSegment(r.PathValue(parameter)) }
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
		age := q.c.cache.age()
		o, at, p := recent[api.Overview](q, fmt.Sprintf("/status?causes=%d&skip=%d&routes=%d&workers=%d", causesOfPage, max(number(q.param("skip")), 0),
			rowsOfOverview, rowsOfOverview), cacheFor)
		if p != nil {
			return nil, p
		}
		shown := overview{Overview: o, At: at, Skipped: int(number(q.param("skip")))}
		if !o.Partial {
			if shown.History, p = readHistory(q, "", "1"); p != nil {
				return nil, p
			}
			var codes []string
			for _, r := range o.Routes {
				codes = append(codes, r.RouteCode)
			}
			if shown.Latencies, p = readLatencies(q, codes); p != nil {
				return nil, p
			}
		}
		person, _ := api.PersonOf(q.r.Context())
		q.c.last.set(person.Role, shown)
		// The heads of other pages have it too: to find the causes once more takes long.
		health, _ := json.Marshal(api.Condition{Status: o.Status, Tally: o.Tally}) // a word and numbers: it cannot fail
		q.c.cache.put(keyOf(person.Role, healthPath), answer{body: health, at: at}, at.Add(healthAge), age)
		return shown, nil
	}},
	"/routes": {"routes", titled("Routes"), func(q query) (any, *api.Problem) {
		v := both{"Filter": q.r.URL.Query()}
		routes, p := get[api.Names[store.Route]](q, "/routes", "q", q.param("q"), "after", q.param("after"), "limit", "50")
		if p != nil {
			return nil, p
		}
		page := routes.Items
		v["Routes"], v["Next"] = page, routes.Next
		if len(page) == 0 {
			return v, nil
		}
		var codes []string
		for _, r := range page {
			codes = append(codes, r.RouteCode)
		}
		if p := readSummaries(q, v, codes...); p != nil {
			return nil, p
		}
		v["Latencies"], p = readLatencies(q, codes)
		return v, p
	}},
	"/routes/{route}": {"route", named("Route", "route"), func(q query) (any, *api.Problem) {
		v, route := both{}, apiSegment(q.name("route"))
		return all(v,
			func() *api.Problem { return read[store.Route](q, v, "Route", "/routes/"+route) },
			func() *api.Problem { return readSummaries(q, v, q.name("route")) },
			func() (p *api.Problem) { v["History"], p = readHistory(q, q.name("route"), "24"); return p },
			func() *api.Problem {
				if q.param("backtest") != "" { // who asks for it wants to know that, and a page has ten statements
					return nil
				}
				return read[*store.RouteLatency](q, v, "Latency", "/routes/"+route+"/latency")
			},
			func() *api.Problem {
				return read[api.List[store.RouteReplayed]](q, v, "Replays", "/replays", "route", q.name("route"), "limit", "10")
			},
			func() *api.Problem {
				return read[api.Names[store.PendingItem]](q, v, "Pending", "/pending", "route", q.name("route"), "limit", "10")
			},
			func() *api.Problem {
				return read[api.Names[store.LetterGroup]](q, v, "Groups", "/dead-letter-groups", "route", q.name("route"), "limit", "20")
			},
			func() *api.Problem {
				return read[api.List[store.AuditEntry]](q, v, "Audit", "/audit", "object", "outbound_route "+q.name("route"), "limit", "10")
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
				"key", q.param("key"), "stream", q.param("stream"), "subject", q.param("subject"), "since", instant(q.param("since")), "until", instant(q.param("until")), "before", q.param("before"))
		}, func() *api.Problem { v["Filter"] = q.r.URL.Query(); return nil })
	}},
	"/events/{event}": {"event", named("Event", "event"), func(q query) (any, *api.Problem) {
		v, event := both{"Asked": q.param("why")}, apiSegment(q.name("event"))
		return all(v,
			func() *api.Problem { return read[store.EventDetails](q, v, "Event", "/events/"+event) },
			func() *api.Problem { return read[api.Names[store.Route]](q, v, "Routes", "/routes") },
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
			return read[api.Names[store.PendingItem]](q, v, "Pending", "/pending", "route", q.param("route"), "source", q.param("source"), "after", q.param("after"))
		})
	}},
	"/dead-letters": {"letters", titled("Dead letters"), func(q query) (any, *api.Problem) {
		v := both{"Filter": q.r.URL.Query()}
		return all(v,
			func() *api.Problem {
				return read[api.Names[store.LetterGroup]](q, v, "Groups", "/dead-letter-groups", "after", q.param("after"), "limit", "50")
			},
			func() *api.Problem {
				return read[api.List[store.LetterJob]](q, v, "Jobs", "/dead-letter-jobs", "limit", "10")
			},
			func() *api.Problem {
				return read[api.Names[store.DeadLetter]](q, v, "Letters", "/dead-letters", "route", q.param("route"), "source", q.param("source"),
					"code", q.param("code"), "after", q.param("before"), "resolved", q.param("resolved"), "limit", "50")
			})
	}},
	"/dead-letters/{id}": {"letter", named("Dead letter", "id"), func(q query) (any, *api.Problem) {
		v, p := get[store.LetterDetails](q, "/dead-letters/"+apiSegment(q.name("id")))
		return v, p
	}},
	"/workers": {"workers", titled("Workers"), simple[api.Names[store.WorkerSummary]]("/workers", "after")},
	"/workers/{worker}": {"worker", named("Worker", "worker"), func(q query) (any, *api.Problem) {
		v, p := get[api.WorkerDetails](q, "/workers/"+apiSegment(q.name("worker")))
		return v, p
	}},
	"/sources": {"sources", titled("Tables and capture"), func(q query) (any, *api.Problem) {
		v := both{}
		return all(v,
			func() *api.Problem {
				return read[api.Names[store.Source]](q, v, "Sources", "/sources", "after", q.param("after"))
			},
			func() *api.Problem { return read[api.Captures](q, v, "Captures", "/captures") })
	}},
	"/sources/{source}": {"source", named("Source", "source"), func(q query) (any, *api.Problem) {
		v, p := get[api.SourceDetails](q, "/sources/"+apiSegment(q.name("source")))
		return v, p
	}},
	"/commands": {"services", titled("Commands"), simple[[]store.Service]("/services")},
	"/commands/{service}": {"service", named("Service", "service"), func(q query) (any, *api.Problem) {
		v, service := both{"Filter": q.r.URL.Query()}, q.name("service")
		return all(v,
			func() *api.Problem {
				p := read[api.ServiceDetails](q, v, "Service", "/services/"+apiSegment(service))
				doing := map[string]store.CommandDoing{}
				for _, d := range v["Service"].(api.ServiceDetails).Doing {
					doing[d.Name] = d
				}
				v["Doing"] = doing
				return p
			},
			func() *api.Problem {
				return read[api.Names[store.CommandClaim]](q, v, "Claims", "/command-claims", "service", service, "state", q.param("state"), "after", q.param("after"))
			})
	}},
	"/commands/{service}/{key}": {"command", named("Command", "key"), func(q query) (any, *api.Problem) {
		v, service, key := both{}, q.name("service"), q.name("key")
		return all(v,
			func() *api.Problem {
				return read[store.ClaimDetails](q, v, "Claim", "/services/"+apiSegment(service)+"/claims/"+apiSegment(key))
			},
			func() *api.Problem {
				return read[api.List[store.AuditEntry]](q, v, "Audit", "/audit", "object", "command "+service+" "+key, "limit", "10")
			})
	}},
	"/heartbeats": {"heartbeats", titled("Heartbeats"), simple[api.Names[store.Heartbeat]]("/heartbeats", "after")},
	"/findings": {"findings", titled("Findings"), func(q query) (any, *api.Problem) {
		v := both{}
		return all(v,
			func() *api.Problem {
				return read[api.Names[store.Finding]](q, v, "Open", "/findings", "after", q.param("after"), "limit", "50")
			},
			func() *api.Problem {
				return read[api.Names[store.Finding]](q, v, "Closed", "/findings", "closed", "true", "limit", "20")
			},
			func() *api.Problem { return read[api.Verification](q, v, "Verify", "/verify") })
	}},
	"/audit": {"audit", titled("Audit"), func(q query) (any, *api.Problem) {
		v := both{"Filter": q.r.URL.Query()}
		return all(v, func() *api.Problem {
			return read[api.List[store.AuditEntry]](q, v, "Audit", "/audit", "who", q.param("who"), "object", q.param("object"),
				"since", instant(q.param("since")), "until", instant(q.param("until")), "before", q.param("before"))
		})
	}},
	"/settings": {"settings", titled("Gates and settings"), func(q query) (any, *api.Problem) {
		v := both{}
		return all(v,
			func() *api.Problem { return read[store.Stage](q, v, "Stage", "/stage") },
			func() *api.Problem { return read[[]store.Gate](q, v, "Gates", "/gates") },
			func() *api.Problem {
				settings, p := get[[]store.Setting](q, "/settings")
				v["Settings"] = slices.DeleteFunc(settings, func(s store.Setting) bool { // gates are above
					return slices.ContainsFunc(v["Gates"].([]store.Gate), func(g store.Gate) bool { return g.Gate == s.Key })
				})
				return p
			},
			func() *api.Problem { return read[[]store.Domain](q, v, "Domains", "/domains") },
			func() *api.Problem {
				return read[api.Names[store.EventType]](q, v, "Types", "/types", "after", q.param("after"))
			},
			func() *api.Problem { return read[[]packlist.State](q, v, "Packs", "/packs") })
	}},
}

// overview is the first page.
type overview struct {
	api.Overview
	At        time.Time // when it was read
	History   history
	Latencies map[string]store.RouteLatency // of the routes that are shown and sent something
	Skipped   int                           // causes that are on the pages before
}

// More is how many causes are on the pages after this one, and Next how many they leave out.
func (o overview) More() int { return o.Bad + o.Warn - o.Next() }

func (o overview) Next() int { return o.Skipped + len(o.Causes) }

// readHistory reads what the charts of a page show: hours back unless the reader has chosen others.
func readHistory(q query, route, hours string) (history, *api.Problem) {
	if chosen := q.param("hours"); slices.ContainsFunc(periods, func(p period) bool { return p.Hours == chosen }) {
		hours = chosen
	}
	steps, p := get[[]store.HistoryStep](q, "/history", "route", route, "hours", hours)
	return charts(steps, hours), p
}

// readSummaries adds how routes are doing, by their codes.
func readSummaries(q query, into both, codes ...string) *api.Problem {
	all, p := get[[]store.RouteSummary](q, "/route-summaries", "routes", strings.Join(codes, ","))
	if p != nil {
		return p
	}
	byCode := map[string]store.RouteSummary{}
	for _, r := range all {
		byCode[r.RouteCode] = r
	}
	into["Summaries"], into["Summary"] = byCode, byCode[q.name("route")]
	return nil
}

// readLatencies reads how long the events of routes take, by route. It takes a tenth of the time that an overview may, so only the first
// who asks waits for it.
func readLatencies(q query, codes []string) (map[string]store.RouteLatency, *api.Problem) {
	if len(codes) == 0 {
		return nil, nil
	}
	all, _, p := recent[[]store.LatencyOfRoute](q, "/route-latencies?routes="+url.QueryEscape(strings.Join(codes, ",")), healthAge)
	byCode := map[string]store.RouteLatency{}
	for _, l := range all {
		byCode[l.RouteCode] = l.RouteLatency
	}
	return byCode, p
}

// causesOfPage is how many causes a page shows: the worst are first.
const causesOfPage = 30

// rowsOfOverview is how many routes the overview shows, those with most dead letters, then those with most that waits; and how many
// workers, those furthest behind.
const rowsOfOverview = 20

// number reads a number of a form; empty or malformed: 0.
func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}
