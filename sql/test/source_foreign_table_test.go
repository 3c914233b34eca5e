package test

import "testing"

// A foreign table among a source's children is read with what the reader's login may do at the other server: a table's owner
// could have a superuser run her statements there. The worker is held, and the others who look at the table do not read it.
func TestForeignTablesAreNotRead(t *testing.T) {
	t.Parallel()
	r := foreign(t)
	r.super.exec(`create foreign data wrapper nowhere; create server far foreign data wrapper nowhere; grant usage on foreign server far to public`)
	r.owner.exec(`create table e.t (id bigint primary key, born_at timestamptz not null); create index on e.t (born_at, id); grant select on e.t to public;
		insert into e.t select n, now() - interval '1 hour' from generate_series(1, 5) n`)
	r.operator.exec(`select tidemark.stage_set('live', 'a test'); select tidemark.domain_set('town'), tidemark.type_set('town', 'birth');
		select tidemark.source_set('births', '{"table": "e.t", "id_column": "id", "timestamp_column": "born_at", "safety": "declared"}', 'a test')`)
	r.operator.worker("w", `{"handler": "emit", "handler_ref": "town/birth", "payload_columns": ["id"]}`)
	r.operator.add("w")
	r.owner.exec(`create foreign table e.kid () inherits (e.t) server far`)
	for _, s := range []tailing{r.operator, r.super, r.worker} {
		s.wantRows(`select (tidemark.foreign_code('e.t'::regclass) ~ '^e.kid is a foreign table of ')::text`, "true")
	}
	if got, err := r.worker.try("births", 0); err != nil || got.Status != "held" {
		t.Errorf("%+v, %v", got, err)
	}
	r.super.exec(`select count(*) from tidemark.queue_health; select count(*) from tidemark.maintain()`) // "has no handler" where it is read
}
