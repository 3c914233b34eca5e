package api

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidemarkhq/tidemark/internal/testserver"
)

// ended waits for the end of the verification.
func (w world) ended() Verified {
	w.t.Helper()
	for w.t.Context().Err() == nil {
		if v := gets[Verification](w, oscar, "GET", "/verify", ""); v.Running == nil {
			return *v.Last
		}
	}
	w.t.Fatal("it never ends")
	return Verified{}
}

// A verification runs in the background, one at a time. It finds what the command finds, and the audit has who asked for it and what came of it.
func TestVerifyInTheBackground(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`select tidemark.finding_open('disk', 'this', 'high', 'tell no one')`)
	if v := gets[Verification](w, vera, "GET", "/verify", ""); v.Running != nil || v.Last != nil {
		t.Fatalf("%+v", v)
	}
	holder := w.db.Connect(t)
	if _, err := holder.Exec(t.Context(), `begin; lock table tidemark.decision in access exclusive mode`); err != nil {
		t.Fatal(err)
	}
	begun := gets[Verification](w, oscar, "POST", "/verify", `{"reason": "after the restore"}`)
	if begun.Running == nil || begun.Running.StartedBy != "oscar" || begun.Running.Reason != "after the restore" || begun.Last != nil {
		t.Fatalf("%+v", begun)
	}
	w.refuses(409, "", oscar, "POST", "/verify", `{"reason": "me too"}`)
	if _, err := holder.Exec(t.Context(), `rollback`); err != nil {
		t.Fatal(err)
	}
	last := w.ended()
	if last.Problem != nil || last.StartedBy != "oscar" || last.Warned == 0 || last.EndedAt.Before(last.StartedAt) {
		t.Errorf("%+v", last)
	}
	// Tests beside this one have databases, which the check of the roles names.
	want := one[string](w, `select string_agg(format('%s|%s|%s|%s', v."check", v.status, v.detail, v.hint), E'\n') from tidemark.verify() v where v."check" <> 'roles'`)
	var got []string
	for _, c := range last.Checks {
		if c.Check != "roles" {
			got = append(got, strings.Join([]string{c.Check, c.Status, c.Detail, c.Hint}, "|"))
		}
	}
	if found := strings.Join(got, "\n"); found != want || !strings.Contains(want, "tell no one") {
		t.Errorf("it found\n%s\nwant\n%s", found, want)
	}
	seen := w.ask(vera, "GET", "/verify", "").Body.String()
	if strings.Contains(seen, "tell no one") || !strings.Contains(seen, "the detail is for operators") {
		t.Errorf("a viewer sees %s", seen)
	}
	if audit := one[string](w, `select string_agg(concat_ws(' ', object, person, reason, after ->> 'failed'), ', ' order by id) from tidemark.audit where action = 'verify'`); audit !=
		"installation oscar after the restore, installation oscar after the restore 0" {
		t.Errorf("the audit has %s", audit)
	}
}

// A verification that is cancelled, or whose server stops, ends at once and leaves no session in the database.
func TestVerifyIsCancelled(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"cancel", "stop"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			pool, err := pgxpool.New(t.Context(), w.db.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			done := make(chan struct{})
			w.api = New(Options{Pool: pool, Log: slog.New(slog.DiscardHandler), Done: done})
			w.refuses(409, "", oscar, "POST", "/verify/cancel", `{"reason": "too slow"}`)
			holder := w.db.Connect(t)
			if _, err := holder.Exec(t.Context(), `begin; lock table tidemark.decision in access exclusive mode`); err != nil {
				t.Fatal(err)
			}
			gets[Verification](w, oscar, "POST", "/verify", `{"reason": "x"}`)
			const waiting = `select count(*)::int from pg_locks where not granted and database = (select oid from pg_database where datname = current_database())`
			for one[int](w, waiting) == 0 && t.Context().Err() == nil {
			}
			if how == "cancel" {
				gets[none](w, oscar, "POST", "/verify/cancel", `{"reason": "too slow"}`)
			} else {
				close(done)
			}
			if last := w.ended(); last.Problem == nil || *last.Problem != "it was cancelled" || len(last.Checks) > 0 {
				t.Errorf("%+v", last)
			}
			for one[int](w, waiting) > 0 && t.Context().Err() == nil {
			}
			if _, err := holder.Exec(context.WithoutCancel(t.Context()), `rollback`); err != nil {
				t.Error(err)
			}
		})
	}
}

// What the audit does not have is not done: a verification begins, and is cancelled, once its transaction has committed.
func TestVerifyWaitsForItsCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`create function public.fails() returns trigger language plpgsql as $f$ begin raise exception 'no'; end $f$`)
	w.exec(`create constraint trigger fails after insert on tidemark.audit deferrable initially deferred for each row execute function public.fails()`)
	commits := func(whether string) { w.exec(`alter table tidemark.audit ` + whether + ` trigger fails`) }
	for _, key := range []string{"X-Test: 1", "Idempotency-Key: k"} {
		w.refuses(409, "P0001", oscar, "POST", "/verify", `{"reason": "x"}`, key)
		if v := gets[Verification](w, oscar, "GET", "/verify", ""); v.Running != nil || v.Last != nil {
			t.Errorf("it has begun: %+v", v)
		}
	}
	commits("disable")
	holder := w.db.Connect(t)
	if _, err := holder.Exec(t.Context(), `begin; lock table tidemark.decision in access exclusive mode`); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second is answered as the first
		if v := gets[Verification](w, oscar, "POST", "/verify", `{"reason": "x"}`, "Idempotency-Key: k"); v.Running == nil {
			t.Errorf("%+v", v)
		}
	}
	const waiting = `select count(*)::int from pg_locks where not granted and database = (select oid from pg_database where datname = current_database())`
	for one[int](w, waiting) == 0 && t.Context().Err() == nil {
	}
	commits("enable")
	w.refuses(409, "P0001", oscar, "POST", "/verify/cancel", `{"reason": "too slow"}`)
	commits("disable")
	if _, err := holder.Exec(t.Context(), `rollback`); err != nil {
		t.Fatal(err)
	}
	if last := w.ended(); last.Problem != nil {
		t.Errorf("it was cancelled: %s", *last.Problem)
	}
}

// The answer to the commit is lost: the request failed, and a repetition of it is told that it was done. So it was.
func TestVerifyOfAnUnknownCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pool, lose := testserver.Deaf(t, w.pool)
	w.api = New(Options{Pool: pool, Log: slog.New(slog.DiscardHandler)})
	holder := w.db.Connect(t)
	if _, err := holder.Exec(t.Context(), `begin; lock table tidemark.decision in access exclusive mode`); err != nil {
		t.Fatal(err)
	}
	lose.Store(true)
	w.refuses(503, "", oscar, "POST", "/verify", `{"reason": "x"}`, "Idempotency-Key: k")
	if v := gets[Verification](w, oscar, "POST", "/verify", `{"reason": "x"}`, "Idempotency-Key: k"); v.Running == nil {
		t.Errorf("%+v", v)
	}
	if v := gets[Verification](w, oscar, "GET", "/verify", ""); v.Running == nil {
		t.Errorf("it does not run: %+v", v)
	}
	lose.Store(true)
	w.refuses(503, "", oscar, "POST", "/verify/cancel", `{"reason": "too slow"}`, "Idempotency-Key: l")
	if last := w.ended(); last.Problem == nil || *last.Problem != "it was cancelled" {
		t.Errorf("%+v", last)
	}
}
