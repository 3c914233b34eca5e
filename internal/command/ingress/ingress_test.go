package ingress_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/tidemarkhq/tidemark/internal/command/ingress"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

func TestMain(m *testing.M) { tidemarktest.Main(m, func() error { return goleak.Find() }) }

// effects is what the commands of the tests do.
const effects = `
create schema app;
create table app.effect (n bigint generated always as identity, id int unique, tenant text);
create function app.make(payload jsonb, context jsonb) returns jsonb language plpgsql as $$
begin
	insert into effect (id, tenant) values ((payload ->> 'id')::int, context ->> 'tenant');
	if payload ? 'fatal' then
		set exit_on_error = on;
		raise 'the end';
	elsif payload ? 'deaf' then
		loop
			begin
				perform pg_sleep(60);
			exception when query_canceled then
			end;
		end loop;
	elsif payload ? 'missing' then
		perform 1 from nowhere;
	elsif payload ? 'sleep' then
		perform pg_sleep((payload ->> 'sleep')::float8);
	end if;
	return jsonb_build_object('id', payload -> 'id');
end $$;`

const payloadSchema = `{"type": "object", "additionalProperties": false, "required": ["id"], "properties": {
	"id": {"type": "integer"}, "name": {"type": "string", "pattern": "^[a-z]+$"}, "missing": {"type": "boolean"}, "fatal": {"type": "boolean"}, "deaf": {"type": "boolean"}, "sleep": {"type": "number"}}}`

const (
	shopToken = "0123456789abcdef0123456789abcdef"
	otherWise = "fedcba9876543210fedcba9876543210"
)

// world is a live service and an ingress.
type world struct {
	t       *testing.T
	db      *tidemarktest.DB
	service string
	url     string

	change func(*ingress.Ingress) // of each that is started; nil: none

	mu       sync.Mutex
	outcomes []store.CommandOutcome
}

func newWorld(t *testing.T) *world {
	t.Helper()
	db := tidemarktest.NewDB(t)
	w := &world{t: t, db: db, service: "s" + strings.ReplaceAll(strings.TrimPrefix(db.Name, "tidemark_test_"), "_", "-")}
	role := "tidemark_service_" + w.service
	t.Cleanup(func() { w.exec(`drop owned by "` + role + `"; drop role "` + role + `"`) })
	w.exec(effects)
	w.exec(`select tidemark.service_set($1)`, w.service)
	w.exec(`grant usage on schema app to "` + role + `"; grant all on all tables in schema app to "` + role + `"`)
	w.exec(`select tidemark.command_set($1, 'make', 1, jsonb_build_object('function', 'app.make', 'schema_version', 2, 'timeout', '1 second', 'payload_schema', $2::text::jsonb))`,
		w.service, payloadSchema)
	w.exec(`select tidemark.command_allow($1, 'shop', tenants => null), tidemark.command_allow($1, 'crm', tenants => '{acme}')`, w.service)
	w.exec(`select tidemark.stage_set('live', 'test'), tidemark.gate_set('commands.enabled', true), tidemark.gate_set('commands.' || $1 || '.enabled', true)`, w.service)
	w.exec(`select tidemark.route_set('results', jsonb_build_object('domain', 'commands', 'type', 'result.' || $1::text, 'target_kind', 'notify', 'target_ref', 'results', 'enabled', true, 'dry_run', false))`, w.service)
	w.exec(`select tidemark.command_set($1, 'make', 1, '{"enabled": true, "dry_run": false}')`, w.service)
	w.url = w.serve(db.Pool, ingress.Options{})
	return w
}

// serve starts an ingress, and returns where.
func (w *world) serve(pool *pgxpool.Pool, o ingress.Options) string {
	w.t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(w.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	o.Listener = listener
	if o.Producers == nil {
		o.Producers = map[string]ingress.Producer{"shop": {Secret: "shop"}, "crm": {Secret: "crm"}}
	}
	o.Secrets = func(name string) []string {
		return map[string][]string{"shop": {"another-token-that-is-still-valid", shopToken}, "crm": {otherWise}}[name]
	}
	o.Log = slog.New(slog.NewTextHandler(w.t.Output(), nil))
	o.Observe = func(_ store.CommandName, o store.CommandOutcome) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.outcomes = append(w.outcomes, o)
	}
	o.Answered = func(int) {}
	server := ingress.New(pool, o)
	if w.change != nil {
		w.change(server)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve() }()
	w.t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := server.Shutdown(context.Background()); err != nil {
			w.t.Error(err)
		}
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	})
	scheme := "http://"
	if o.TLS != nil {
		scheme = "https://"
	}
	return scheme + listener.Addr().String()
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.db.Pool.Exec(context.Background(), sql, args...); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

func (w *world) text(sql string, args ...any) (text string) {
	w.t.Helper()
	if err := w.db.Pool.QueryRow(context.Background(), sql, args...).Scan(&text); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return text
}

// A post is a request; one without changes is of the producer shop.
type post struct {
	method, path string
	header       http.Header
	body         string
}

func (w *world) post(key, payload string) post {
	return post{http.MethodPost, "/v1/commands/" + w.service + "/make/v1", http.Header{
		"Authorization": {"Bearer " + shopToken}, "Idempotency-Key": {key}, "Content-Type": {"application/json"},
	}, payload}
}

func (p post) with(header string, values ...string) post {
	p.header = p.header.Clone()
	if p.header.Del(header); len(values) > 0 {
		p.header[http.CanonicalHeaderKey(header)] = values
	}
	return p
}

func (p post) at(path string) post { p.path = path; return p }

type answer struct {
	status int
	header http.Header
	text   string

	Status   string          `json:"status"`
	Original string          `json:"original_status"`
	Code     string          `json:"error_code"`
	Message  string          `json:"error_message"`
	Result   json.RawMessage `json:"result"`
	At       string          `json:"processed_at"`
	TraceID  string          `json:"trace_id"`
}

func (w *world) send(p post) answer {
	w.t.Helper()
	got, err := do(w.t.Context(), http.DefaultClient, w.url, p)
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

func do(ctx context.Context, client *http.Client, url string, p post) (got answer, err error) {
	request, err := http.NewRequestWithContext(ctx, p.method, url+p.path, strings.NewReader(p.body))
	if err != nil {
		return got, err
	}
	request.Header = p.header
	response, err := client.Do(request)
	if err != nil {
		return got, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return got, err
	}
	got.status, got.header, got.text = response.StatusCode, response.Header, string(text)
	return got, json.Unmarshal(bytes.TrimSpace(text), &got)
}

// Requirement CM3 (ingress): the same claims and results as from Kafka and psql, by status codes of HTTP.
func TestIngress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	first := w.send(w.post("k1", `{"id": 1}`).with("Traceparent", trace))
	if first.status != http.StatusOK || first.Status != "processed" || string(first.Result) != `{"id":1}` && string(first.Result) != `{"id": 1}` || first.TraceID != trace {
		t.Errorf("%+v", first)
	}
	if got := w.text(`select via || ' ' || producer || ' ' || login || ' ' || state from tidemark.command_claim`); got != "ingress shop "+w.text("select session_user::text")+" processed" {
		t.Error(got)
	}
	again := w.send(w.post("k1", `{"id": 1.0}`))
	if again.status != http.StatusOK || again.Status != "duplicate" || again.At != first.At || string(again.Result) != string(first.Result) {
		t.Errorf("again: %+v", again)
	}
	// From psql it is the same claim, and the results are in the log for the route.
	envelope := `{"event_id": "0199a3c5-7a01-7cc0-9b7e-2f1c5d3a9e10", "service": "` + w.service + `", "command": "make", "command_version": 1, "schema_version": 1,
		"payload": {"id": 1}, "idempotency_key": "k1", "occurred_at": "2026-01-31T12:00:00Z", "trace_id": "0af7651916cd43dd8448eb211c80319c", "metadata": {"producer": "shop"}}`
	if got := w.text(`select tidemark.command_run($1::text) ->> 'status'`, envelope); got != "duplicate" {
		t.Error(got)
	}
	if got := w.text(`select string_agg(payload ->> 'status', ' ' order by seq) from tidemark.outbox where type like 'result.%'`); got != "processed duplicate duplicate" {
		t.Error(got)
	}

	for _, c := range []struct {
		name   string
		post   post
		status int
		want   string // status and code
	}{
		{"another payload under the key", w.post("k1", `{"id": 2}`), 409, "failed_terminal idempotency.key_reused"},
		{"a failure", w.post("k2", `{"id": 1}`), 422, "failed_terminal sql.constraint"},
		{"the failure again", w.post("k2", `{"id": 1}`), 422, "duplicate sql.constraint"},
		{"an operator's fault", w.post("k3", `{"id": 3, "missing": true}`), 202, "failed_retryable sql.undefined"},
		{"the parked one again", w.post("k3", `{"id": 3, "missing": true}`), 202, "duplicate sql.undefined"},
		{"late", w.post("k4", `{"id": 4, "sleep": 30}`), 202, "failed_retryable runtime.timeout"},
		{"a payload that SQL refuses", w.post("k5", `{"id": "x"}`), 422, "rejected contract.payload_invalid"},
		{"a payload that only the whole schema refuses", w.post("k5", `{"id": 5, "name": "A1"}`), 422, "rejected contract.payload_invalid"},
		{"the corrected one", w.post("k5", `{"id": 5, "name": "abc"}`), 200, "processed "},
		{"an older schema version", w.post("k6", `{"id": 6}`).with("Tidemark-Schema-Version", "1"), 200, "processed "},
		{"a schema version to come", w.post("k7", `{"id": 7}`).with("Tidemark-Schema-Version", "3"), 422, "rejected contract.unknown_schema_version"},
		{"an unknown command", w.post("k7", `{}`).at("/v1/commands/" + w.service + "/other/v1"), 422, "rejected contract.unknown_command"},
		{"an unknown version", w.post("k7", `{}`).at("/v1/commands/" + w.service + "/make/v2"), 422, "rejected contract.unsupported_version"},
		{"an unknown service", w.post("k7", `{}`).at("/v1/commands/nowhere/make/v1"), 422, "rejected contract.unknown_service"},
		{"a tenant that the producer may not ask for", w.post("k7", `{"id": 7}`).with("Tidemark-Tenant", "acme"), 403, " identity.tenant_not_allowed"},
		{"another producer for its tenant", w.post("k8", `{"id": 8}`).with("Authorization", "Bearer "+otherWise).with("Tidemark-Tenant", "acme"), 200, "processed "},
		{"another producer with the key of the first", w.post("k1", `{"id": 1}`).with("Authorization", "Bearer "+otherWise).with("Tidemark-Tenant", "acme"), 409, "failed_terminal idempotency.key_reused"},
		{"a key that is not ASCII", w.post("clé-ключ", `{"id": 9}`), 200, "processed "},
	} {
		got := w.send(c.post)
		if got.status != c.status || got.Status+" "+got.Code != c.want {
			t.Errorf("%s: %+v", c.name, got)
		}
		if got.header.Get("Cache-Control") != "no-store" || got.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %v", c.name, got.header)
		}
	}
	if got := w.text(`select string_agg(id::text, ' ' order by n) from app.effect`); got != "1 5 6 8 9" {
		t.Error("effects", got)
	}
	w.exec(`select tidemark.command_disallow($1, 'shop')`, w.service)
	if got := w.send(w.post("k10", `{"id": 10}`)); got.status != http.StatusForbidden || got.Code != "identity.producer_not_allowed" || got.Status != "" {
		t.Errorf("disallowed: %+v", got)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.outcomes) != 21 {
		t.Errorf("%d commands were told", len(w.outcomes))
	}
}

// What is no request for a command has one clear answer each, and touches nothing.
func TestIngressRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	good := w.post("k", `{"id": 1}`)
	body := func(text string) post { return w.post("k", text) }
	deep := strings.Repeat(`{"a":`, 64) + "1" + strings.Repeat("}", 64)
	for _, c := range []struct {
		name   string
		post   post
		status int
		want   string // code and part of the message
	}{
		{"no token", good.with("Authorization"), 401, " no token"},
		{"another token", good.with("Authorization", "Bearer "+strings.ToUpper(shopToken)), 401, ""},
		{"the beginning of a token", good.with("Authorization", "Bearer "+shopToken[:31]), 401, ""},
		{"an empty token", good.with("Authorization", "Bearer "), 401, ""},
		{"the token as a password", good.with("Authorization", "Basic "+shopToken), 401, ""},
		{"two tokens", good.with("Authorization", "Bearer "+shopToken, "Bearer "+otherWise), 401, ""},
		{"a producer's name in a header", good.with("Authorization").with("X-Forwarded-User", "shop"), 401, ""},
		{"another method", post{http.MethodGet, good.path, good.header, ""}, 405, " POST"},
		{"another path", good.at("/v1/commands/" + w.service), 404, " there is only"},
		{"no version", good.at("/v1/commands/" + w.service + "/make/latest"), 404, " version"},
		{"version 0", good.at("/v1/commands/" + w.service + "/make/v0"), 404, ""},
		{"version 01", good.at("/v1/commands/" + w.service + "/make/v01"), 404, ""},
		{"version +1", good.at("/v1/commands/" + w.service + "/make/v+1"), 404, ""},
		{"a huge version", good.at("/v1/commands/" + w.service + "/make/v2147483648"), 404, ""},
		{"a command that is none", good.at("/v1/commands/" + w.service + "/m%22ake/v1"), 400, "envelope.invalid command "},
		{"a service that is none", good.at("/v1/commands/%2e%2e%00/make/v1"), 400, "envelope.invalid "},
		{"the command with its service", good.at("/v1/commands/" + w.service + "/" + w.service + ".make/v1"), 400, "envelope.invalid command "},
		{"no type", good.with("Content-Type"), 415, ""},
		{"a form", good.with("Content-Type", "application/x-www-form-urlencoded"), 415, ""},
		{"text", good.with("Content-Type", "text/plain"), 415, ""},
		{"another charset", good.with("Content-Type", "application/json; charset=latin1"), 415, ""},
		{"compressed", good.with("Content-Encoding", "gzip"), 415, ""},
		{"no key", good.with("Idempotency-Key"), 400, "envelope.invalid the header Idempotency-Key is missing"},
		{"two keys", good.with("Idempotency-Key", "a", "b"), 400, "envelope.invalid the header Idempotency-Key is there 2 times"},
		{"a quoted key", good.with("Idempotency-Key", `"k"`), 400, "envelope.invalid the header Idempotency-Key begins with a quote"},
		{"a long key", good.with("Idempotency-Key", strings.Repeat("k", 201)), 400, "envelope.invalid idempotency_key "},
		{"a key that is not UTF-8", good.with("Idempotency-Key", "\xff"), 400, "envelope.invalid the header Idempotency-Key is not UTF-8"},
		{"two tenants", good.with("Tidemark-Tenant", "a", "b"), 400, "envelope.invalid "},
		{"a long tenant", good.with("Tidemark-Tenant", strings.Repeat("t", 201)), 400, "envelope.invalid metadata.tenant "},
		{"a schema version that is none", good.with("Tidemark-Schema-Version", "1.0"), 400, "envelope.invalid "},
		{"a trace that is none", good.with("Traceparent", "x"), 400, "envelope.invalid trace_id "},
		{"no body", body(""), 400, "envelope.invalid the payload "},
		{"no JSON", body("id=1"), 400, "envelope.invalid the payload "},
		{"an array", body("[]"), 400, "envelope.invalid the payload is not a JSON object"},
		{"null", body("null"), 400, "envelope.invalid the payload is not a JSON object"},
		{"text behind", body(`{"id": 1} {}`), 400, "envelope.invalid the payload "},
		{"members of the envelope behind", body(`{"id": 1}, "metadata": {"producer": "crm"}`), 400, "envelope.invalid the payload "},
		{"a member twice", body(`{"id": 1, "id": 2}`), 400, "envelope.invalid the payload "},
		{"a byte that is not UTF-8", body("{\"id\": \"\xff\"}"), 400, "envelope.invalid the payload "},
		{"a NUL", body(`{"id": "\u0000"}`), 400, "envelope.invalid the payload "},
		{"too deep", body(deep), 400, "envelope.invalid "},
		{"a number beyond a double", body(`{"id": 1e999}`), 400, "envelope.invalid "},
		{"a payload that is too large", body(`{"id": "` + strings.Repeat("x", 1<<20) + `"}`), 413, "envelope.too_large the payload has more than"},
		{"an envelope that is too large", body(`{"id": "` + strings.Repeat("x", 1<<20-100) + `"}`), 413, "envelope.too_large "},
		{"headers that are too large", good.with("Tidemark-Tenant", strings.Repeat("x", 64<<10)), 431, ""},
	} {
		got, err := do(t.Context(), http.DefaultClient, w.url, c.post)
		if got.status != c.status || c.want != "" && !strings.Contains(got.Code+" "+got.Message, c.want) {
			t.Errorf("%s: %d %s, want %d %q (%v)", c.name, got.status, got.text, c.status, c.want, err)
		}
		if c.status != 431 && (err != nil || got.Message == "" || strings.Contains(got.text, shopToken)) {
			t.Errorf("%s: %q, %v", c.name, got.text, err)
		}
		if c.status == 401 && got.header.Get("WWW-Authenticate") != "Bearer" || c.status == 405 && got.header.Get("Allow") != "POST" {
			t.Errorf("%s: %v", c.name, got.header)
		}
	}
	if got := w.text(`select (select count(*) from tidemark.command_claim) + (select count(*) from tidemark.dead_letter) + (select count(*) from tidemark.command_record)
		+ (select count(*) from tidemark.outbox) + (select count(*) from app.effect) || ''`); got != "0" {
		t.Error(got, "rows were written")
	}
}

// Paused, off, and without a database: 503, and the same request later.
func TestIngressPaused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	wait := func(name string, got answer) {
		t.Helper()
		if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "5" || got.Message == "" || got.Code != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	w.exec(`select tidemark.gate_set('commands.enabled', false)`)
	wait("closed", w.send(w.post("k", `{"id": 1}`)))
	w.exec(`select tidemark.gate_set('commands.enabled', true), tidemark.command_set($1, 'make', 1, '{"enabled": false}')`, w.service)
	wait("off", w.send(w.post("k", `{"id": 1}`)))
	w.exec(`select tidemark.command_set($1, 'make', 1, '{"enabled": true}')`, w.service)
	away, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/none")
	if err != nil {
		t.Fatal(err)
	}
	defer away.Close()
	got, err := do(t.Context(), http.DefaultClient, w.serve(away, ingress.Options{}), w.post("k", `{"id": 1}`))
	if err != nil {
		t.Error(err)
	}
	wait("no database", got)

	if got := w.send(w.post("k", `{"id": 1}`)); got.status != http.StatusOK || got.Status != "processed" {
		t.Errorf("in the end: %+v", got)
	}
	w.exec(`select tidemark.command_set($1, 'make', 1, '{"dry_run": true}')`, w.service)
	if got := w.send(w.post("dry", `{"id": 5}`)); got.status != http.StatusOK || !strings.Contains(got.text, `"dry_run" : true`) {
		t.Errorf("in dry run: %+v", got)
	}
	if got := w.text(`select string_agg(id::text, ' ') from app.effect`); got != "1" {
		t.Error("effects", got)
	}
}

// A command that ends its session, or does not end at all, is parked: a producer that asks again, as it is told to, does not run it again,
// and no session of the server stays with it.
func TestIngressParksWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"fatal", "deaf"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			request := w.post("k", `{"id": 1, "`+how+`": true}`)
			for _, status := range []string{"failed_retryable", "duplicate"} {
				if got := w.send(request); got.status != http.StatusAccepted || got.Status != status || got.Code != "runtime.timeout" {
					t.Errorf("%+v", got)
				}
			}
			if got := w.text(`select count(*)::text from pg_stat_activity where datname = current_database() and state = 'active' and pid <> pg_backend_pid()`); got != "0" {
				t.Error(got, "sessions are still at it")
			}
			if got := w.text(`select count(*)::text from tidemark.command_parked`); got != "1" {
				t.Error(got, "are parked")
			}
			if got := w.send(w.post("next", `{"id": 1}`)); got.status != http.StatusOK {
				t.Errorf("the next: %+v", got)
			}
			// Behind a closed gate it is not recorded either.
			w.exec(`select tidemark.gate_set('commands.enabled', false)`)
			if got := w.send(request); got.status != http.StatusServiceUnavailable {
				t.Errorf("closed: %+v", got)
			}
		})
	}
}

// A command whose function waits has its share of the slots: more of it are told to come again, and others are answered.
func TestIngressSlots(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`select tidemark.command_set($1, 'make', 1, '{"timeout": "1 minute"}'), tidemark.command_set($1, 'other', 1, '{"function": "app.make", "payload_schema": {"type": "object"}}')`, w.service)
	w.exec(`select tidemark.command_set($1, 'other', 1, '{"enabled": true, "dry_run": false}')`, w.service)
	blocker := w.db.Connect(t)
	if _, err := blocker.Exec(t.Context(), `begin; insert into app.effect (id) values (1), (2), (3), (4)`); err != nil {
		t.Fatal(err)
	}
	var waiting sync.WaitGroup
	for _, id := range []string{"1", "2", "3", "4"} {
		waiting.Go(func() {
			if got := w.send(w.post(id, `{"id": `+id+`}`)); got.status != http.StatusOK {
				t.Errorf("%s: %+v", id, got)
			}
		})
	}
	for w.text(`select count(*)::text from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`) != "4" {
		runtime.Gosched()
	}
	other := w.post("other", `{"id": 6}`)
	other.path = "/v1/commands/" + w.service + "/other/v1"
	if got := w.send(other); got.status != http.StatusOK {
		t.Errorf("another command: %+v", got)
	}
	if got := w.send(w.post("5", `{"id": 5}`)); got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "5" ||
		got.Message != "too many commands are under way: send it again, with the same key" {
		t.Errorf("a fifth: %+v", got)
	}
	if _, err := blocker.Exec(t.Context(), `rollback`); err != nil {
		t.Fatal(err)
	}
	waiting.Wait()
	if got := w.send(w.post("5", `{"id": 5}`)); got.status != http.StatusOK {
		t.Errorf("a fifth, later: %+v", got)
	}
}

// One key at once, from many connections: one runs, the others hear its result.
func TestIngressAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const producers = 12
	answers := make([]answer, producers)
	var all sync.WaitGroup
	for n := range producers {
		all.Go(func() { answers[n] = w.send(w.post("k", `{"id": 1, "sleep": 0.05}`)) })
	}
	all.Wait()
	count := map[string]int{}
	for _, a := range answers {
		if a.status != http.StatusOK || string(a.Result) != string(answers[0].Result) {
			t.Errorf("%+v", a)
		}
		count[a.Status]++
	}
	if diff := cmp.Diff(map[string]int{"processed": 1, "duplicate": producers - 1}, count); diff != "" {
		t.Error(diff)
	}
}
