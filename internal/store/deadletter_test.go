package store_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// deadLetter leaves one open dead letter behind, and the route boom that made it.
func deadLetter(t *testing.T, test *tidemarktest.DB, db *store.DB) store.DeadLetter {
	t.Helper()
	exec(t, test, `create function public.boom(jsonb) returns void language plpgsql as $$ begin raise 'boom'; end $$`)
	must(t)(db.RouteSet(t.Context(), "boom", store.Changes{
		"domain": "shop", "target_kind": "sql", "target_ref": "public.boom",
	}, "", true))
	if err := db.StageSet(t.Context(), "live", "test"); err != nil {
		t.Fatal(err)
	}
	must(t)(db.RouteSet(t.Context(), "boom", store.Changes{"enabled": true, "dry_run": false}, "", false))
	emit(t, test, tidemark.Event{Domain: "shop", Type: "order.paid", Payload: json.RawMessage(`{"a": 1}`)})
	open(t, db, "default")
	must(t)(db.RouteWorkerRun(t.Context(), "default", 100))
	letters, err := db.DeadLetters(t.Context(), store.LetterFilter{})
	if err != nil || len(letters) != 1 {
		t.Fatal(letters, err)
	}
	return letters[0]
}

// Letters are discarded in the order of their numbers, whatever the order in which they are named, and once.
func TestDeadLettersDiscard(t *testing.T) {
	t.Parallel()
	test, db := setup(t)
	letter := deadLetter(t, test, db)
	for range 2 {
		emit(t, test, tidemark.Event{Domain: "shop", Type: "order.paid", Payload: json.RawMessage(`{"a": 2}`)})
		must(t)(db.RouteWorkerRun(t.Context(), "default", 100))
	}
	a, b, c := letter.ID, letter.ID+1, letter.ID+2
	discard := func(dryRun bool, want []int64, ids ...int64) {
		t.Helper()
		letters, err := db.DeadLettersDiscard(t.Context(), ids, "test", dryRun)
		var got []int64
		for _, l := range letters {
			got = append(got, l.ID)
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Error(err, diff)
		}
	}
	discard(true, []int64{a, b}, b, a, b)
	discard(false, []int64{a, b}, b, a, b)
	discard(true, []int64{c}, c, b, a)
	var order []string
	rows, err := test.Connect(t).Query(t.Context(), `select object from tidemark.audit where action = 'dead_letter_discard' order by id`)
	if err == nil {
		order, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	if diff := cmp.Diff([]string{fmt.Sprint("dead_letter ", a), fmt.Sprint("dead_letter ", b)}, order); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

// Letters are counted in 64 bits. A replay goes on after one with such a number.
func TestLettersWithLargeNumbers(t *testing.T) {
	t.Parallel()
	test, db := setup(t)
	exec(t, test, `select setval(pg_get_serial_sequence('tidemark.dead_letter', 'id'), 3000000000)`)
	letter := deadLetter(t, test, db)
	emit(t, test, tidemark.Event{Domain: "shop", Type: "order.paid", Payload: json.RawMessage(`{"a": 2}`)})
	must(t)(db.RouteWorkerRun(t.Context(), "default", 100))
	filter := store.LetterFilter{Route: "boom", Limit: 1}
	for _, want := range []int64{letter.ID, letter.ID + 1, 0} {
		part, err := db.DeadLetterReplayMany(t.Context(), filter, false, "")
		if err != nil || want > 0 && (len(part) != 1 || part[0].ID != want) || want == 0 && len(part) > 0 {
			t.Fatalf("%+v, %v; want %d", part, err, want)
		}
		filter.After = want
	}
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	test, db := setup(t)
	letter := deadLetter(t, test, db)
	if *letter.RouteCode != "boom" || letter.ErrorCode != "P0001" || *letter.ErrorDetail != "boom" || letter.ResolvedAt != nil {
		t.Errorf("got %+v", letter)
	}
	for _, filter := range []store.LetterFilter{
		{Route: "other"}, {Code: "22012"}, {Until: letter.LastFailedAt}, {Since: letter.LastFailedAt.Add(time.Second)},
	} {
		if got, err := db.DeadLetters(t.Context(), filter); len(got) != 0 || err != nil {
			t.Errorf("%+v: got %v, %v", filter, got, err)
		}
	}
	shown, err := db.DeadLetter(t.Context(), letter.ID)
	if diff := cmp.Diff(letter, shown); diff != "" || err != nil {
		t.Error(err, diff)
	}
	var snapshot struct{ Payload map[string]int }
	if text, err := db.DeadLetterSnapshot(t.Context(), letter.ID); err != nil || json.Unmarshal(text, &snapshot) != nil || snapshot.Payload["a"] != 1 {
		t.Errorf("got %s, %v", text, err)
	}

	dry, err := db.DeadLetterReplay(t.Context(), letter.ID, true, "")
	if err != nil || dry.Outcome != "pending" || dry.AttemptNo != 2 {
		t.Errorf("got %+v, %v", dry, err)
	}
	filter := store.LetterFilter{Route: "boom", Code: "P0001", Limit: 10}
	many, err := db.DeadLetterReplayMany(t.Context(), filter, false, "")
	if err != nil || len(many) != 1 || many[0].Outcome != "failed" || *many[0].Detail != "boom" {
		t.Errorf("got %+v, %v", many, err)
	}
	wantError(t, db.DeadLetterDiscard(t.Context(), letter.ID, " "), tidemark.ErrArgument)
	if err := db.DeadLetterDiscard(t.Context(), letter.ID, "not needed"); err != nil {
		t.Error(err)
	}

	_, err = db.DeadLetterReplay(t.Context(), letter.ID, false, "")
	wantError(t, err, tidemark.ErrResolved)
	wantError(t, db.DeadLetterDiscard(t.Context(), letter.ID, "again"), tidemark.ErrResolved)
	_, err = db.DeadLetter(t.Context(), 99)
	wantError(t, err, tidemark.ErrNotFound)
	resolved, err := db.DeadLetters(t.Context(), store.LetterFilter{Resolved: true})
	if err != nil || len(resolved) != 1 || *resolved[0].Resolution != "discarded" {
		t.Errorf("got %+v, %v", resolved, err)
	}
}
