package main

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

//go:embed schema.sql
var schema string

func TestMain(m *testing.M) { tidemarktest.Main(m, func() error { return goleak.Find() }) }

func TestOrders(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	if _, err := db.Connect(t).PgConn().Exec(t.Context(), schema).ReadAll(); err != nil {
		t.Fatal(err)
	}
	service := newService(db.Pool)
	put := func(id, body string) (status int, event string) {
		t.Helper()
		w := httptest.NewRecorder()
		service.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/orders/"+id, strings.NewReader(body)))
		var answer struct{ Event string }
		_ = json.Unmarshal(w.Body.Bytes(), &answer) // of an error it is none
		return w.Code, answer.Event
	}

	status, first := put("7", `{"customer": "ada", "cents": 1200}`)
	if status != http.StatusOK || first == "" {
		t.Errorf("status %d, event %q", status, first)
	}
	if status, again := put("7", `{"customer": "ada", "cents": 1200}`); status != http.StatusOK || again != first {
		t.Errorf("again: status %d, event %q, want %q", status, again, first)
	}
	if status, _ := put("8", `{"customer": "bob", "cents": 0}`); status != http.StatusUnprocessableEntity {
		t.Errorf("for nothing: status %d", status)
	}
	if status, _ := put("9", `{"customer"`); status != http.StatusBadRequest {
		t.Errorf("no order: status %d", status)
	}

	// An idempotency key is forgotten after emit_key.retention, and the order is still there.
	if _, err := db.Connect(t).Exec(t.Context(), `delete from tidemark.emit_key`); err != nil {
		t.Fatal(err)
	}
	if status, again := put("7", `{"customer": "ada", "cents": 1200}`); status != http.StatusOK || again != first {
		t.Errorf("a month later: status %d, event %q, want %q", status, again, first)
	}
	if status, _ := put("7", `{"customer": "ada", "cents": 900}`); status != http.StatusConflict {
		t.Errorf("another order of this id: status %d", status)
	}

	// An order from before the column event_id.
	if _, err := db.Connect(t).Exec(t.Context(), `insert into orders (id, customer, cents) values ('6', 'eve', 100)`); err != nil {
		t.Fatal(err)
	}
	if status, event := put("6", `{"customer": "eve", "cents": 100}`); status != http.StatusOK || event != "" {
		t.Errorf("an order without event: status %d, event %q", status, event)
	}

	var orders, events string
	if err := db.Pool.QueryRow(t.Context(), `select (select string_agg(id, ' ' order by created_at) from orders),
		(select string_agg(event_id || ' ' || key || ' ' || payload, ' ') from tidemark.outbox)`).Scan(&orders, &events); err != nil {
		t.Fatal(err)
	}
	if want := first + ` 7 {"id": "7", "cents": 1200, "customer": "ada"}`; orders != "7 6" || events != want {
		t.Errorf("orders %s, events %s, want %s", orders, events, want)
	}
}
