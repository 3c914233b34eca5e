package test

import (
	"fmt"
	"io/fs"
	"testing"

	"github.com/tidemarkhq/tidemark/sql"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// CM8: a record whose claim may be gone is refused by its age: a longer retention does not keep claims longer that were made before, not even
// where the command was deleted and registered anew; and a record whose time is ahead has its claim for as long as it is taken.
func TestCommandAge(t *testing.T) {
	t.Parallel()
	p := serve(t, tidemarktest.NewDB(t)).partition()
	var sent []string
	send := func(want, ahead string) {
		t.Helper()
		n := int64(len(sent))
		at := one[string](p.session, `select jsonb_build_object('record_at', clock_timestamp() + $1::interval)::text`, ahead)
		sent = append(sent, p.record(n, fmt.Sprint("k", n), fmt.Sprintf(`{"id": %d}`, n+1), at))
		p.wantPass(fmt.Sprintf(`ran %d {"%s": 1}`, n+1, want), "batch", sent[n])
	}
	later := func(days int) {
		t.Helper()
		p.exec(`update tidemark.command_claim set processed_at = processed_at - $1 * interval '1 day', expires_at = expires_at - $1 * interval '1 day'`, days)
		p.exec(`update tidemark.command set retention_from = retention_from - $1 * interval '1 day'`, days)
		p.exec(`select * from tidemark.maintain()`)
		for i := range sent {
			sent[i] = one[string](p.session, `select jsonb_set(c, '{record_at}', to_jsonb((c ->> 'record_at')::timestamptz - $2 * interval '1 day'))::text from (select $1::jsonb) c (c)`, sent[i], days)
		}
	}
	again := func(n int64, want string) {
		t.Helper()
		p.place(n)
		p.wantPass(fmt.Sprintf(`ran %d {"%s": 1}`, n+1, want), "batch", sent[n])
		p.place(int64(len(sent)))
	}
	retention := func(days int) {
		t.Helper()
		p.command("charge", fmt.Sprintf(`{"retention": "%d days"}`, days))
	}

	send("processed", "20 hours")
	send("rejected", "25 hours")
	send("rejected", "7000 years")
	p.wantRows(`select distinct payload ->> 'error_code' from tidemark.outbox where payload ->> 'status' = 'rejected'`, "idempotency.expired")
	send("processed", "0")
	later(29)
	again(3, "redelivered")
	later(1)
	again(3, "rejected")
	again(0, "redelivered") // of 29 days and 4 hours
	later(1)
	again(0, "rejected")

	send("processed", "0")
	later(20)
	retention(60)
	send("processed", "0")
	later(9)
	again(4, "redelivered")
	later(1)
	again(4, "rejected") // its claim is gone
	again(5, "redelivered")
	retention(90) // before 60 days were reached
	send("processed", "0")
	later(19)
	again(5, "redelivered")
	later(1)
	again(4, "rejected")
	again(5, "rejected")
	again(6, "redelivered")
	send("processed", "0")
	retention(10)
	later(11)
	again(7, "rejected")
	retention(90)
	send("processed", "0")

	p.command("charge", `{"enabled": false}`)
	p.exec(`select tidemark.command_delete($1, 'charge', 1, 'why')`, p.name)
	p.command("charge", `{"function": "app.charge", "retention": "120 days", "payload_schema": {"type": "object"}, "enabled": true, "dry_run": false}`)
	later(9)
	again(8, "redelivered")
	later(2)
	again(8, "rejected")
	send("processed", "0")
	later(119)
	again(9, "redelivered")
	later(1)
	again(9, "rejected")
	p.command("charge", `{"enabled": false}`)
	send("failed_retryable", "20 hours")
	p.command("charge", `{"enabled": true}`)
	p.retry("k10 processed")
	later(120)
	again(10, "redelivered")
	p.refused("TM005", `no column "retention_from"`, `select tidemark.command_set($1, 'charge', 1, '{"retention_from": null}')`, p.name)
}

// CM8: where retention was raised before the upgrade to the release that notes it, the audit has it: also of a command that was deleted and registered
// again.
func TestCommandRetentionWasRaised(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := serve(t, db)
	retention := func(command, days string) {
		t.Helper()
		s.command(command, fmt.Sprintf(`{"function": "app.charge", "retention": "%s days", "payload_schema": {"type": "object"}, "enabled": false}`, days))
	}
	for _, command := range []string{"anew", "charge", "long", "lower"} {
		retention(command, "30")
	}
	retention("long", "31")
	s.exec(`update tidemark.audit set at = at - interval '100 days'`)
	retention("charge", "60")
	retention("charge", "90")
	retention("lower", "20")
	s.exec(`select tidemark.command_delete($1, 'anew', 1, 'why')`, s.name)
	retention("anew", "40")
	s.exec(`create table raised as select id, retention_from, retention_before from tidemark.command where command in ('anew', 'charge')`)
	s.exec(`update tidemark.command set retention_from = null, retention_before = null`)
	files, err := fs.Glob(sql.Files, "migrations/*_command_raised.sql")
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	migration, err := fs.ReadFile(sql.Files, files[0])
	if err != nil {
		t.Fatal(err)
	}
	s.begin()
	s.exec(string(migration))
	s.commit()
	s.wantRows(`select concat_ws(' ', command, retention_before) from tidemark.command where retention_from is not null order by command`, "anew 30 days", "charge 30 days")
	s.wantRows(`select c.command from tidemark.command c join raised r using (id) where c.retention_before = r.retention_before and c.retention_from between r.retention_from - interval '1 minute'
		and r.retention_from + interval '1 minute' order by 1`, "anew", "charge")
}
