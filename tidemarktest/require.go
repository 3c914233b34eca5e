package tidemarktest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark"
)

// RequireEmitted ends the test unless the log has exactly one event with all fields that want has: its payload must contain that
// of want. It returns the event's id. In a transaction it sees what it has emitted.
func RequireEmitted(t testing.TB, db Database, want tidemark.Event) (id string) {
	t.Helper()
	want.OccurredAt = want.OccurredAt.Truncate(time.Microsecond) // as it is stored
	wanted, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	rows, _ := db.Query(t.Context(), `select o.event_id::text,
			to_jsonb(o) @> (w.want - '{payload,occurred_at}'::text[]) and o.payload @> coalesce(w.want -> 'payload', '{}')
				and coalesce(o.occurred_at = (w.want ->> 'occurred_at')::timestamptz, true),
			concat_ws(' ', o.domain || '/' || o.type, 'key ' || o.key, o.payload)
		from tidemark.outbox o, (select $1::text::jsonb as want) w
		where o.domain = w.want ->> 'domain'
		order by o.seq`, string(wanted))
	type row struct {
		ID      string
		Matches bool
		Shown   string
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	if err != nil {
		t.Fatal(err)
	}
	var ids, shown []string
	for _, r := range found {
		if r.Matches {
			ids = append(ids, r.ID)
		}
		shown = append(shown, r.Shown)
	}
	if len(ids) != 1 {
		const most = 20
		if left := len(shown) - most; left > 0 {
			shown = slices.Concat([]string{"…"}, shown[left:])
		}
		t.Fatalf("%d events match %s; the domain has:\n%s", len(ids), wanted, cmp.Or(strings.Join(shown, "\n"), "none"))
	}
	return ids[0]
}

// patience is how long RequireDelivered waits for a program or a daemon that runs beside the test.
const patience = 20 * time.Second

// RequireDelivered ends the test unless the route delivers the event with the id, at the latest after 20 seconds. It fails with the
// reason why the route did not, and at once if it never will.
func RequireDelivered(t testing.TB, db Database, route, id string) {
	t.Helper()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(patience); ; {
		state, sentence, err := why(t.Context(), db, route, id)
		waits := slices.Contains([]string{"pending", "not read"}, state)
		switch {
		case err != nil:
			t.Fatal(err)
		case state == "sent":
			return
		case !waits || time.Now().After(deadline):
			t.Fatalf("route %s did not deliver the event %s: %s", route, id, sentence)
		}
		select {
		case <-poll.C:
		case <-t.Context().Done():
			t.Fatalf("route %s did not deliver the event %s before the test ended: %s", route, id, sentence)
		}
	}
}

func why(ctx context.Context, db Database, route, id string) (state, sentence string, err error) {
	err = db.QueryRow(ctx, `select state, sentence from tidemark.why($1::uuid, $2)`, id, route).Scan(&state, &sentence)
	if refused := (*tidemark.Error)(nil); errors.As(tidemark.AsError(err), &refused) {
		err = refused
	}
	return state, sentence, err
}

// RequireHandled tests a handler from end to end: it registers the program's handlers and opens everything (GoLive), registers the
// event's type where it is not registered, emits the event, and drains the program. It ends the test unless each handler that takes the event has
// handled it, and returns the event's id.
func RequireHandled(t testing.TB, db Database, program DrainedProgram, e tidemark.Event) (id string) {
	t.Helper()
	GoLive(t, db, program)
	exec(t, db, `select tidemark.type_set($1, $2)
		where not exists (select from tidemark.event_type k where k.domain = $1 and k.type = $2)`, e.Domain, e.Type)
	id, err := tidemark.Emit(t.Context(), db, e)
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows, _ := db.Query(t.Context(), `select distinct e.route_code from tidemark.event_evidence(tidemark.event_seq($1::text::uuid)) e
		join tidemark.outbound_route r on r.route_code = e.route_code where r.target_kind = 'go' order by 1`, id)
	routes, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if len(routes) == 0 {
		t.Fatalf("no handler takes the event %s, %s/%s", id, e.Domain, e.Type)
	}
	for _, route := range routes {
		if state, sentence, err := why(t.Context(), db, route, id); err != nil {
			t.Fatal(err)
		} else if state != "sent" {
			t.Fatalf("route %s did not handle the event %s: %s", route, id, sentence)
		}
	}
	return id
}
