package test

import (
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// SECURITY.md says what a foreign key gives away. The owner of a referencing table emits by a cascade as the login that deletes. Before
// PostgreSQL 18 her AFTER triggers even run as that login.
func TestCascadesActForTheDeletingLogin(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	super := open(t, db, "superuser")
	super.exec(`select tidemark.type_set('town', 'moved')`)
	app, eve := login(t, db, "app", "tidemark_emitter"), login(t, db, "eve", "")
	super.exec(`create schema a authorization ` + app.name + `; create schema e authorization ` + eve.name + `; grant usage on schema a, e to public;
		select tidemark.domain_grant('town', '` + app.name + `')`)
	super.exec(`grant tidemark_emitter to ` + eve.name)
	app.exec(`create table a.parent (id int primary key); insert into a.parent values (1); grant references on a.parent to ` + eve.name)
	eve.exec(`create table e.child (id int references a.parent on delete cascade);
		create function e.emits() returns trigger language plpgsql as $$ begin
			perform tidemark.emit('town', 'moved', jsonb_build_object('trigger', tg_name, 'as', current_user)); return old; end $$;
		create trigger before before delete on e.child for each row execute function e.emits();
		create trigger after after delete on e.child for each row execute function e.emits();
		create constraint trigger deferred after delete on e.child deferrable initially deferred for each row execute function e.emits()`)
	eve.wantRefused("TM014", `select tidemark.emit('town', 'moved', '{}')`)
	super.exec(`insert into e.child values (1)`)
	app.exec(`delete from a.parent`)
	after := app.name
	if one[int](super, `select current_setting('server_version_num')::integer`) >= 180000 {
		after = eve.name
	}
	super.wantRows(`select o.actor || ': ' || (o.payload ->> 'trigger') || ' as ' || (o.payload ->> 'as') from tidemark.outbox o where o.domain = 'town' order by o.seq`,
		strings.Split(strings.NewReplacer("APP", app.name, "EVE", eve.name, "AFTER", after).Replace("APP: before as EVE,APP: after as AFTER,APP: deferred as AFTER"), ",")...)
}
