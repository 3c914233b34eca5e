package store_test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// Where the session has no statement_timeout, a part of a job has one: slow targets would otherwise outlast the patience of the
// daemon, which takes the part back, and the next try would come no further.
func TestLetterJobStepHasATimeout(t *testing.T) {
	t.Parallel()
	test, db := setup(t)
	deadLetter(t, test, db)
	exec(t, test, `create table public.timeouts (value text)`)
	exec(t, test, `create or replace function public.boom(jsonb) returns void language sql as $$ insert into public.timeouts values (current_setting('statement_timeout')) $$`)
	must(t)(db.RouteSet(t.Context(), "boom", store.Changes{"timeout": "3 seconds"}, "", false))
	must(t)(db.LetterJobAdd(t.Context(), store.LetterJobAsk{Action: "replay", Route: "boom", Reason: "mended"}))
	if worked, _, err := db.LetterJobStep(t.Context(), nil); err != nil || !worked {
		t.Fatal(worked, err)
	}
	var got, after string
	if err := test.Pool.QueryRow(t.Context(), `select value, current_setting('statement_timeout') from public.timeouts`).Scan(&got, &after); err != nil {
		t.Fatal(err)
	}
	if got != "26s" || after != "0" {
		t.Errorf("in the part %s, after it %s", got, after)
	}
}
