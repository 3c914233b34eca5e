// Package api serves Tidemark's JSON API under /api/v1: what the command line can see and do, for the console and for programs.
//
// Each request is one transaction. It runs as the database login of the server, names the person in the audit, and may do
// what the person's role allows; viewers are held to it by the database too, as members of tidemark_reader.
package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/internal/strict"
)

// Pool is a *pgxpool.Pool.
type Pool interface {
	store.Querier
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// Options configure an API.
type Options struct {
	Pool     Pool
	ReadOnly bool         // refuse all writes
	Probe    Probe        // sends test deliveries; nil: targets outside the database are not tested
	Log      *slog.Logger // gets what a client is not told

	Done <-chan struct{} // closed when the server stops: a verification that runs ends; nil: never
}

// Probe sends the test delivery that was begun, and returns what came of it.
type Probe = func(ctx context.Context, begun store.RouteTest) store.RouteTested

// statementLimit bounds what a request costs the database, and lockLimit how long one that reads waits for a lock: the overview has to
// tell who has it.
const (
	statementLimit = 10 * time.Second
	lockLimit      = time.Second
)

// requestLimit bounds how long a request waits for a connection and holds it, whatever the number of its statements: there are few.
const requestLimit = 30 * time.Second

// maxBody is the longest body of a request: a configuration row, never a payload.
const maxBody = 1 << 20

type server struct {
	Options
	causes   *causes
	huma     huma.API
	refusals *huma.Response // what every operation may answer

	verification verification
}

// New returns the API as a handler. The context of each request needs a person: see WithPerson.
func New(o Options) http.Handler {
	mux, _ := build(o)
	return prepared(known(mux))
}

// Document is the OpenAPI description, as YAML or JSON readers take it.
func Document() ([]byte, error) {
	_, s := build(Options{})
	return json.MarshalIndent(s.huma.OpenAPI(), "", "  ")
}

func build(o Options) (*http.ServeMux, *server) {
	config := huma.DefaultConfig("Tidemark", "1")
	config.DocsPath, config.SchemasPath, config.OpenAPIPath = "", "", "/api/v1/openapi"
	config.CreateHooks = nil // no $schema in the bodies
	config.Formats = map[string]huma.Format{"application/json": bodies, "json": bodies}
	config.Transformers = []huma.Transformer{asProblem}
	config.Info.Description = "What Tidemark holds, what is wrong with it, and the acts that change it. Errors are problems (RFC 9457) " +
		"with the code of the refusal and a hint."
	mux := http.NewServeMux()
	s := &server{Options: o, causes: newCauses(), huma: humago.New(mux, config)}
	s.refusals = &huma.Response{Description: "Refused", Content: map[string]*huma.MediaType{problemType: {
		Schema: s.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Problem](), true, ""),
	}}}
	s.status()
	s.log()
	s.letters()
	s.routes()
	s.routeTest()
	s.workers()
	s.captures()
	s.commands()
	s.liveness()
	s.settings()
	s.deletions()
	s.erasures()
	s.verifications()
	return mux, s
}

// bodies are JSON. Values reach the database as they are written: a float64 rounds long numbers, and of a member that comes twice one
// would be lost.
var bodies = huma.Format{
	Marshal: huma.DefaultJSONFormat.Marshal,
	Unmarshal: func(text []byte, v any) error {
		if _, first := v.(*any); !first { // for the handler, once it is valid
			return json.Unmarshal(text, v)
		}
		if err := strict.Check(text); err != nil {
			return err
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber() // 1e400 is none of float64, and jsonb has it
		return decoder.Decode(v)
	},
}

// access says who may call an operation.
type access struct {
	role  Role
	write bool
}

var (
	see       = access{role: Viewer}
	operate   = access{role: Operator, write: true}
	configure = access{role: Admin, write: true}
)

// operation adds an operation: a function of the request that runs in one transaction.
func operation[I, O any](s *server, method, path, summary string, may access, run func(ctx context.Context, db *store.DB, in *I) (O, error)) {
	register(s, method, path, summary, may, func(ctx context.Context, in *I) (out O, err error) {
		err = s.transact(ctx, may, func(db *store.DB) (err error) {
			out, err = run(ctx, db, in)
			return err
		})
		return out, err
	})
}

// register adds an operation: a function of the request.
func register[I, O any](s *server, method, path, summary string, may access, run func(ctx context.Context, in *I) (O, error)) {
	tag, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	type output struct{ Body O }
	huma.Register(s.huma, huma.Operation{
		OperationID: operationID(method, path), Method: method, Path: "/api/v1" + path, Summary: summary, Tags: []string{tag},
		Description: "For the role " + may.role.String() + ".", MaxBodyBytes: maxBody, Parameters: parameters(may),
		Responses: map[string]*huma.Response{"default": s.refusals}, Middlewares: huma.Middlewares{s.guard(may)},
	}, func(ctx context.Context, in *I) (*output, error) {
		if blank(in) {
			return nil, s.problem(ctx, &tidemark.Error{Code: "TM005", Message: "the reason is blank", Hint: "Say why, for the audit."})
		}
		ctx, cancel := context.WithTimeout(ctx, requestLimit)
		defer cancel()
		body, err := run(ctx, in)
		if err != nil {
			return nil, s.problem(ctx, err)
		}
		return &output{body}, nil
	})
}

// blank tells whether a body has a reason that says nothing.
func blank(in any) bool {
	body := reflect.ValueOf(in).Elem()
	if body.Kind() == reflect.Struct {
		body = body.FieldByName("Body")
	}
	if body.Kind() != reflect.Struct {
		return false
	}
	reason := body.FieldByName("Reason")
	return reason.Kind() == reflect.String && reason.Len() > 0 && strings.TrimSpace(reason.String()) == ""
}

// parameters are those that operations of a kind share.
func parameters(may access) []*huma.Param {
	if !may.write {
		return nil
	}
	longest := 255
	return []*huma.Param{{
		Name: "Idempotency-Key", In: "header", Description: "The same request with the same key is done once within a day, and answered the same.",
		Schema: &huma.Schema{Type: huma.TypeString, MaxLength: &longest},
	}}
}

// operationID names an operation for the clients that are made from the document: get-route of GET /routes/{route}, pause-worker
// of POST /workers/{worker}/pause.
func operationID(method, path string) string {
	var words []string
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, segment := range segments {
		switch {
		case strings.HasPrefix(segment, "{"):
		case i+1 < len(segments) && strings.HasPrefix(segments[i+1], "{"):
			words = append(words, strings.TrimSuffix(segment, "s")) // one of them
		default:
			words = append(words, segment)
		}
	}
	verb := strings.ToLower(method)
	if last := len(words) - 1; method == http.MethodPost && last > 0 {
		verb, words = words[last], words[:last]
	}
	return verb + "-" + strings.Join(words, "-")
}

// transact runs work in a transaction of the person.
func (s *server) transact(ctx context.Context, may access, work func(*store.DB) error) error {
	person, _ := PersonOf(ctx)
	options := pgx.TxOptions{IsoLevel: pgx.ReadCommitted}
	if !may.write {
		if shared, has := ctx.Value(sharedKey{}).(*shared); has {
			return shared.read(ctx, s, work)
		}
		options.AccessMode = pgx.ReadOnly
	}
	if may.write {
		defer s.causes.forget() // also where it failed: perhaps the answer to the commit was lost
	}
	return pgx.BeginTxFunc(ctx, s.Pool, options, func(tx pgx.Tx) error {
		db := store.New(tx)
		if err := db.ActFor(ctx, person.Name, person.Role == Viewer, patience(may)); err != nil {
			return err
		}
		return work(db)
	})
}

func patience(may access) store.Patience {
	if may.write {
		return store.Patience{Statement: statementLimit, Lock: statementLimit}
	}
	return store.Patience{Statement: statementLimit, Lock: lockLimit}
}

// guard refuses requests that the person may not make, before anything of them is read.
func (s *server) guard(may access) func(huma.Context, func(huma.Context)) {
	return func(c huma.Context, next func(huma.Context)) {
		refused := s.refused(c.Context(), may)
		if refused == nil {
			next(c)
			return
		}
		c.SetHeader("Content-Type", problemType)
		c.SetStatus(refused.Status)
		_ = json.NewEncoder(c.BodyWriter()).Encode(refused) // the client is gone: nothing can receive the error
	}
}

// refused is why the person may not do it, or nil.
func (s *server) refused(ctx context.Context, may access) *Problem {
	person, known := PersonOf(ctx)
	switch {
	case !known:
		return problem(http.StatusUnauthorized, "sign in first", "")
	case may.write && s.ReadOnly:
		return problem(http.StatusForbidden, "this server is read-only", "It was started with read_only.")
	case person.Role < may.role:
		return problem(http.StatusForbidden, fmt.Sprintf("this needs the role %s; %s has the role %s", may.role, person.Name, person.Role),
			"The configuration of the console gives roles.")
	}
	return nil
}

// Act is the body of an act that needs nothing but a reason.
type Act struct {
	Reason string `json:"reason" minLength:"1" maxLength:"1024" doc:"Why, for the audit."`
}

// act adds a write. With an Idempotency-Key the same request is done once, and answered the same for a day.
func act[I, O any](s *server, method, path, summary string, may access, run func(ctx context.Context, db *store.DB, in *I) (O, error)) {
	operation(s, method, path, summary, may, func(ctx context.Context, db *store.DB, in *I) (O, error) {
		return once(ctx, db, func() (O, error) { return run(ctx, db, in) })
	})
}

// once runs a write, unless the request was done before: then it returns what was answered.
func once[O any](ctx context.Context, db *store.DB, run func() (O, error)) (out O, err error) {
	key, request := repeatable(ctx)
	if key == "" {
		return run()
	}
	person, _ := PersonOf(ctx)
	known, err := db.AnswerBegin(ctx, person.Name, key, request)
	if err != nil {
		return out, err
	}
	if known != nil {
		return out, json.Unmarshal(known, &out)
	}
	if out, err = run(); err != nil {
		return out, err
	}
	text, err := json.Marshal(out)
	if err != nil {
		return out, err
	}
	return out, db.AnswerEnd(ctx, person.Name, key, text)
}

// pausing adds the writes that pause what a path names, and let it go on.
func pausing[I any](s *server, path, pauses, resumes string, set func(ctx context.Context, db *store.DB, in *I, pause bool) (changed bool, err error)) {
	for _, w := range []struct {
		verb, summary string
		pause         bool
	}{{"/pause", pauses, true}, {"/resume", resumes, false}} {
		act(s, "POST", path+w.verb, w.summary, operate, func(ctx context.Context, db *store.DB, in *I) (out Changed, err error) {
			out.Changed, err = set(ctx, db, in, w.pause)
			return out, err
		})
	}
}

type requestKey struct{}

type request struct {
	key  string
	hash []byte
}

// repeatable is the Idempotency-Key of the request, if any, and a hash of what it asks for.
func repeatable(ctx context.Context) (key string, hash []byte) {
	r, _ := ctx.Value(requestKey{}).(request)
	return r.key, r.hash
}
