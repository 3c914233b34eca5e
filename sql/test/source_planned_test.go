package test

import (
	"context"
	"testing"
)

// becomesEvil is what the owner of e.t does while a page of it is handled: PostgreSQL lets her, beside a reader.
const becomesEvil = `create index on e.t ((e.evil(1)))`

// midway prepares a source e.t with rows of an hour ago, read by worker w with an SQL function that waits for a lock.
func midway(t *testing.T, handler string) rolesOfATable {
	t.Helper()
	r := foreign(t)
	r.owner.exec(`create table e.t (id bigint primary key, born_at timestamptz not null, what text); create index on e.t (born_at, id);
		grant select on e.t to public; insert into e.t select n, now() - interval '1 hour' + n * interval '1 minute', 'a' from generate_series(1, 5) n`)
	r.super.exec(`create schema app; grant usage on schema app to public; create function app.take(rows anyarray) returns void language plpgsql as $$ begin
			perform pg_advisory_lock_shared(77), pg_advisory_unlock_shared(77);
			` + handler + ` end $$`)
	r.operator.exec(`select tidemark.stage_set('live', 'a test'); select tidemark.source_set('births', '{"table": "e.t", "id_column": "id",
		"timestamp_column": "born_at", "safety": "declared", "sweep_window": "1 day", "bucket": "1 minute"}', 'a test')`)
	r.operator.worker("w", `{"handler": "sql", "handler_ref": "app.take"}`)
	r.operator.add("w")
	return r
}

// whileHandled runs a pass, and makes the table evil while the handler of the pass waits.
func (r rolesOfATable) whileHandled(t *testing.T) (run, error) {
	t.Helper()
	r.super.exec(`select pg_advisory_lock(77)`)
	type result struct {
		run run
		err error
	}
	done := make(chan result, 1)
	go func() {
		got, err := r.worker.try("births")
		done <- result{got, err}
	}()
	r.worker.becomes(r.super.session, `wait_event = 'advisory'`)
	r.owner.exec(becomesEvil)
	r.super.exec(`select pg_advisory_unlock(77)`)
	got := <-done
	return got.run, got.err
}

// The owner of a table makes an index while a page of it is handled, which may take long. What the pass reads of the table
// after the handler does not run her function.
func TestForeignCodeNeverRunsAfterTheHandler(t *testing.T) {
	t.Parallel()
	heldAndQuiet := func(r rolesOfATable, got run, err error) {
		r.super.t.Helper()
		if err != nil || got.Status != "held" {
			r.super.t.Errorf("%+v, %v, want it held", got, err)
		}
		r.super.want(`select is_called from e.runs`, "false")
	}
	t.Run("a page that failed is read again", func(t *testing.T) {
		t.Parallel()
		r := midway(t, `raise 'bad';`)
		got, err := r.whileHandled(t)
		heldAndQuiet(r, got, err)
		r.super.want(findings, "source_misconfigured w/births/0")
	})
	t.Run("a sweep compares counts", func(t *testing.T) {
		t.Parallel()
		r := midway(t, "")
		r.lateRow()
		got, err := r.whileHandled(t)
		if got.Step != "" && got.Step != "sweep" {
			t.Errorf("%+v, want a sweep", got)
		}
		heldAndQuiet(r, got, err)
	})
	t.Run("a sweep of a Go program", func(t *testing.T) {
		t.Parallel()
		r := midway(t, "")
		r.lateRow()
		r.worker.exec(`select tidemark.claim('w', 'me', '30 seconds', 'births', 0)`)
		r.worker.begin()
		var plan, read string
		if err := r.worker.conn.QueryRow(context.Background(), `select o.plan, o.read from tidemark.worker_cursor c cross join lateral
			tidemark.source_open('w', 'births', 0, (select h.lease_epoch from tidemark.heartbeat h where h.executor_id = tidemark.executor_id('w', 'births', 0)), null, '30 seconds') o
			where c.worker = 'w'`).Scan(&plan, &read); err != nil {
			t.Fatal(err)
		}
		r.owner.exec(becomesEvil)
		if err := r.worker.session.try(`select tidemark.source_close((select h.lease_epoch from tidemark.heartbeat h where h.executor_id = tidemark.executor_id('w', 'births', 0)),
			$1::text::tidemark.source_plan, $2::text::tidemark.source_page, '{}', 0, clock_timestamp())`, plan, read); err == nil || err.Code != "42501" {
			t.Errorf("source_close: %v, want 42501", err)
		}
		r.worker.rollback()
		r.super.want(`select is_called from e.runs`, "false")
	})
}

// lateRow leaves the worker before the last part of a sweep, which finds a row behind the watermark.
func (r rolesOfATable) lateRow() {
	r.super.t.Helper()
	r.worker.drain("births")
	r.super.exec(`update tidemark.worker_cursor set sweep = sweep - 'done_at' where worker = 'w'`)
	const next = `select coalesce(last_run_summary ->> 'step' = 'forward' and sweep ->> 'segment' = 'window', false) from tidemark.worker_cursor where worker = 'w'`
	for passes := 0; !one[bool](r.super.session, next); passes++ {
		if r.worker.once("births"); passes == 20 {
			r.super.t.Fatal(r.super.lines(`select * from tidemark.worker_cursor where worker = 'w'`))
		}
	}
	r.owner.exec(`insert into e.t values (9, now() - interval '1 hour' + interval '150 seconds', 'late')`)
}

// An operator who gives a worker a source of numbers looks for the first of them.
func TestForeignCodeNeverRunsWhenAWorkerGetsASource(t *testing.T) {
	t.Parallel()
	for name, attack := range map[string]string{
		"index":  becomesEvil,
		"policy": `create policy p on e.t using (e.run() > 0); alter table e.t enable row level security, force row level security`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := foreign(t)
			r.owner.exec(`create table e.t (id bigint generated always as identity primary key, what text); grant select on e.t, e.t_id_seq to public`)
			r.operator.source("births", `{"table": "e.t", "id_column": "id", "safety": "sequence"}`)
			r.operator.worker("w", `{"handler": "sql", "handler_ref": "app.take"}`)
			r.owner.exec(attack)
			for _, s := range []tailing{r.operator, r.super} {
				_ = s.session.try(`select tidemark.worker_source_add('w', 'births', 'a test')`)
			}
			if err := r.operator.session.try(`select tidemark.worker_source_add('w', 'births', 'a test')`); err == nil || err.Code != "42501" {
				t.Errorf("worker_source_add: %v, want 42501", err)
			}
			r.super.want(`select is_called from e.runs`, "false")
		})
	}
}
