// Package console is Tidemark's web console and JSON API as an http.Handler, to be mounted in a Go program behind its own
// sign-in. The command tidemark console serves the same.
//
//	h, err := console.New(pool, console.Options{
//		Prefix:   "/tidemark",
//		Identify: func(r *http.Request) (console.Person, bool) { … },
//	})
//	mux.Handle("/tidemark/", h)
//
// The login of the pool has to be a member of tidemark_admin. The console acts as that login and names the person in
// tidemark.audit; viewers are held to the rights of tidemark_reader by the database too.
package console

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidemarkhq/tidemark/internal/api"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// Person is who makes a request.
type Person = api.Person

// Role is what a person may do: each role may do all that the ones before it may.
type Role = api.Role

// RouteTest is a test of a route's target that was begun: the route and the event, as JSON.
type RouteTest = store.RouteTest

// RouteTested is what came of it. Its outcome is delivered, failed or unknown.
type RouteTested = store.RouteTested

// The roles.
const (
	Viewer   = api.Viewer   // sees everything but payloads
	Operator = api.Operator // sees payloads, replays, pauses, opens and closes gates
	Admin    = api.Admin    // changes routes, workers, types and the stage
)

// Options configure a console.
type Options struct {
	// Identify returns the person who makes a request, or false if the request has no sign-in: the console refuses it. The console
	// calls it for each request. Required.
	Identify func(*http.Request) (Person, bool)

	// Prefix of all paths, such as /tidemark, without a slash at the end. Default: none.
	Prefix string

	// SignOut is the path that a form is posted to in order to sign out. Default: the pages have no such form.
	SignOut string

	// ReadOnly refuses all acts. Default: false.
	ReadOnly bool

	// Probe sends a test delivery to the target of a route outside the database, and returns what came of it. Default: the console
	// tests targets inside the database only.
	Probe func(context.Context, RouteTest) RouteTested

	// Observe is told of each answer to a person: the page or operation of the API, such as "GET /routes/{route}", the HTTP status, and
	// how long it took. Several goroutines call it at once. Default: not called.
	Observe func(page string, status int, took time.Duration)

	// Done is closed when the server stops: then the streams that tell pages of changes end, which would hold it up, and a verification
	// that runs in the background. Default: never; a stream lasts a minute.
	Done <-chan struct{}

	// Logger gets what a client is not told. Default: slog.Default().
	Logger *slog.Logger
}

//go:embed pages/*.html static/*
var files embed.FS

type console struct {
	Options
	api     http.Handler
	store   *store.DB
	pages   *template.Template
	cache   cache
	last    lastKnown
	changes changes
}

// New returns a console of the database. It serves the pages, and the API below /api/v1.
func New(pool *pgxpool.Pool, o Options) (http.Handler, error) {
	c, err := newConsole(pool, o)
	if err != nil {
		return nil, err
	}
	return c.handler()
}

func newConsole(pool *pgxpool.Pool, o Options) (*console, error) {
	if o.Identify == nil {
		return nil, errors.New("console: Options.Identify is needed: it tells who makes a request")
	}
	if o.Prefix != "" && (!strings.HasPrefix(o.Prefix, "/") || strings.HasSuffix(o.Prefix, "/")) {
		return nil, errors.New("console: Options.Prefix begins with a slash and does not end with one")
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	c := &console{Options: o, store: store.New(pool), api: api.New(api.Options{Pool: pool, ReadOnly: o.ReadOnly, Probe: o.Probe, Log: o.Logger, Done: o.Done})}
	c.cache.kept = map[string]*kept{}
	c.changes = changes{look: c.mark, seen: c.cache.forget, listeners: map[chan string]struct{}{}}
	var err error
	if c.pages, err = template.New("").Funcs(c.functions()).ParseFS(files, "pages/*.html"); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *console) handler() (http.Handler, error) {
	static, err := fs.Sub(files, "static")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /static/", http.StripPrefix("/static/", http.FileServerFS(static)))
	mux.Handle("/api/v1/", c.api)
	for path, view := range views {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { c.page(w, r, view) })
	}
	mux.HandleFunc("GET /events/find", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, c.Prefix+"/events/"+segment(strings.TrimSpace(r.FormValue("event"))), http.StatusSeeOther) //nolint:gosec // segment escapes it: TestPathsLeadNowhere
	})
	mux.HandleFunc("GET /act/{act}", c.ask)
	mux.HandleFunc("POST /act/{act}", c.do)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		c.problem(w, r, &api.Problem{Status: http.StatusNotFound, Title: "Not found", Detail: "unknown page " + r.URL.Path, Hint: "The navigation above lists the pages."})
	})
	var crossOrigin http.CrossOriginProtection
	crossOrigin.SetDenyHandler(http.HandlerFunc(c.otherSite))
	outer := http.NewServeMux()
	outer.HandleFunc("GET /changes", c.stream) // not observed: how long a page is open is no time of an answer
	outer.Handle("/", c.observed(mux))
	inner := c.identified(crossOrigin.Handler(outer))
	if c.Prefix == "" {
		return inner, nil
	}
	return http.StripPrefix(c.Prefix, inner), nil
}

// otherSite refuses a request that a page of another site makes: to a program by a problem, to a person by a page.
func (c *console) otherSite(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/api/") {
		api.Refuse(w, api.OtherSite(true))
		return
	}
	c.problem(w, r, api.OtherSite(false))
}

// observed tells Observe of each answer.
func (c *console) observed(next http.Handler) http.Handler {
	if c.Observe == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, answer := time.Now(), &noted{w, http.StatusOK}
		next.ServeHTTP(answer, r)
		c.Observe(strings.TrimSuffix(r.Pattern, "{$}"), answer.status, time.Since(began)) // the muxes have noted the pattern in r
	})
}

// noted keeps the status of an answer.
type noted struct {
	http.ResponseWriter

	status int
}

// WriteHeader implements http.ResponseWriter.
func (n *noted) WriteHeader(status int) {
	n.status = status
	n.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection, to bound how long a body takes to arrive.
func (n *noted) Unwrap() http.ResponseWriter { return n.ResponseWriter }

// identified passes on the requests of people who have signed in, and sets the headers of all answers.
func (c *console) identified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		if h.Get("Content-Security-Policy") == "" {
			h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; object-src 'none'; form-action 'self'; frame-ancestors 'none'")
		}
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		person, known := c.Identify(r)
		static := strings.HasPrefix(r.URL.Path, "/static/")
		switch {
		case static:
			h.Set("Cache-Control", "public, max-age=300")
		case known:
			r = r.WithContext(api.WithPerson(r.Context(), person))
		case !strings.HasPrefix(r.URL.Path, "/api/"): // the API says it in its own form
			http.Error(w, "sign in first", http.StatusUnauthorized)
			return
		}
		if r.Method == http.MethodPost && !strings.HasPrefix(r.URL.Path, "/api/") {
			r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
		}
		next.ServeHTTP(w, r)
	})
}

// shell is what every page shows around its content.
type shell struct {
	Person   Person
	Role     string
	ReadOnly bool
	SignOut  string
	Path     string
	Title    string
	Status   string
	Bad      int
	Warn     int
	Checked  time.Time  // when that was so
	Old      *time.Time // when what is shown was read, if the database cannot be reached; null: now
	Problem  *api.Problem
	Done     string
	Data     any
}

// page reads what a view shows, and shows it.
func (c *console) page(w http.ResponseWriter, r *http.Request, v view) {
	ctx := api.Share(r.Context())
	defer api.EndShared(ctx)
	r = r.WithContext(ctx)
	data, err := v.read(query{c: c, r: r})
	if err != nil {
		c.problem(w, r, err)
		return
	}
	c.show(w, r, http.StatusOK, v.template, shell{Title: v.title(r), Done: dones[r.URL.Query().Get("done")], Data: data})
}

// problem is the page of what went wrong. A database that cannot be reached shows what was last known of it.
func (c *console) problem(w http.ResponseWriter, r *http.Request, p *api.Problem) {
	s := shell{Title: p.Title, Problem: p}
	if p.Status == http.StatusServiceUnavailable {
		person, _ := api.PersonOf(r.Context())
		if o, at, known := c.last.get(person.Role); known {
			s.Data, s.Old = o, &at
		}
	}
	c.show(w, r, p.Status, "problem", s)
}

// show writes a page. Nothing is written before all of it is made: a broken page says so.
func (c *console) show(w http.ResponseWriter, r *http.Request, status int, name string, s shell) {
	s.Person, _ = api.PersonOf(r.Context())
	s.Role, s.ReadOnly, s.SignOut, s.Path = s.Person.Role.String(), c.ReadOnly, c.SignOut, r.URL.Path
	s.Status, s.Bad, s.Warn, s.Checked = c.health(r.Context(), s)
	api.EndShared(r.Context()) // not for as long as a slow browser takes
	var body bytes.Buffer
	if err := c.pages.ExecuteTemplate(&body, name, s); err != nil {
		c.Logger.ErrorContext(r.Context(), "cannot show a page", "page", name, "error", err)
		http.Error(w, "this page cannot be shown: the log of the server says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // the client is gone: nothing can receive the error
}

const (
	// healthAge is how old the health in the head of a page may be: to find the causes takes longer than to read most pages.
	healthAge  = 10 * time.Second
	healthPath = "/health"
)

// health is the worst status and how many causes there are, for the head of each page, and when they were looked for.
func (c *console) health(ctx context.Context, s shell) (status string, bad, warn int, at time.Time) {
	if s.Problem != nil && s.Problem.Status == http.StatusServiceUnavailable {
		return "unknown", 0, 0, time.Now()
	}
	if o, has := s.Data.(overview); has {
		return o.Status, o.Bad, o.Warn, o.At
	}
	q := query{c: c, r: (&http.Request{}).WithContext(ctx)}
	known, at, err := recent[api.Condition](q, healthPath, healthAge)
	if err != nil {
		return "unknown", 0, 0, time.Now()
	}
	return known.Status, known.Bad, known.Warn, at
}
