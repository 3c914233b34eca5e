package test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

var update = flag.Bool("update", false, "rewrite testdata/schema.golden")

const golden = "testdata/schema.golden"

// A fresh install is what the file says, on every version of PostgreSQL: whatever changes it shows in review.
func TestFreshInstallIsGolden(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "golden")
	got := strings.Join(schema(s), "\n") + "\n"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("the schema is not that of %s; if it is meant to be, run this test with -update (-want +got)\n%s", golden, diff)
	}
	s.wantAlike()
}

// schema lists what the catalogs know of an installation, without what versions of PostgreSQL show in
// different ways: constraints for not null, definitions of views, and lz4, which a server may lack.
func schema(s session) []string {
	s.t.Helper()
	s.exec(`set search_path = pg_catalog`)
	defer s.exec(`reset search_path`)
	var all []string
	for _, part := range []string{
		schemaRoles, schemaTypes, schemaTables, schemaColumns, schemaConstraints, schemaIndexes, schemaPartitions, schemaSequences,
		schemaFunctions, schemaTriggers, schemaGrants, schemaRows,
	} {
		all = append(all, column[string](s, `select replace(line, 'tidemark.', '') from (`+part+`) s (line) order by line collate "C"`)...)
	}
	return all
}

const (
	schemaRoles = `
select concat_ws(' ', 'role', rolname, case when rolsuper then 'superuser' end, case when rolinherit then 'inherit' end, case when rolcreaterole then 'createrole' end,
	case when rolcreatedb then 'createdb' end, case when rolcanlogin then 'login' end, case when rolreplication then 'replication' end, case when rolbypassrls then 'bypassrls' end)
from pg_roles where rolname in ('tidemark_owner', 'tidemark_admin', 'tidemark_executor', 'tidemark_emitter', 'tidemark_reader')
union all
select distinct concat_ws(' ', 'role', m.member::regrole, 'is', m.roleid::regrole)
from pg_auth_members m where m.member::regrole::text in ('tidemark_owner', 'tidemark_admin', 'tidemark_executor', 'tidemark_emitter', 'tidemark_reader')
	and m.roleid::regrole::text not like '%tidemark_service_%'` // of other tests' services

	schemaTypes = `
select concat_ws(' ', 'type', t.oid::regtype, 'enum', (select string_agg(e.enumlabel, ', ' order by e.enumsortorder) from pg_enum e where e.enumtypid = t.oid))
from pg_type t where t.typnamespace = 'tidemark'::regnamespace and t.typtype = 'e'
union all
select concat_ws(' ', 'type', t.oid::regtype || '.' || a.attname, '#' || a.attnum, format_type(a.atttypid, a.atttypmod))
from pg_type t join pg_class c on c.oid = t.typrelid and c.relkind = 'c' join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
where t.typnamespace = 'tidemark'::regnamespace`

	schemaTables = `
select concat_ws(' ', case c.relkind when 'v' then 'view' else 'table' end, c.oid::regclass, 'of', c.relowner::regrole,
	'partitioned by ' || pg_get_partkeydef(c.oid), 'with ' || array_to_string(c.reloptions, ', '), case c.relpersistence when 'u' then 'unlogged' end)
from pg_class c where c.relnamespace = 'tidemark'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition`

	schemaColumns = `
select concat_ws(' ', 'column', c.oid::regclass || '.' || a.attname, '#' || a.attnum, format_type(a.atttypid, a.atttypmod), case when a.attnotnull then 'not null' end,
	case a.attidentity when 'a' then 'identity always' when 'd' then 'identity by default' end,
	case a.attgenerated when 's' then 'generated' else case when d.oid is not null then 'default' end end, pg_get_expr(d.adbin, d.adrelid))
from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
where c.relnamespace = 'tidemark'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition`

	schemaConstraints = `
select concat_ws(' ', 'constraint', c.conrelid::regclass || '.' || c.conname, pg_get_constraintdef(c.oid))
from pg_constraint c join pg_class r on r.oid = c.conrelid
where c.connamespace = 'tidemark'::regnamespace and c.contype not in ('n', 't') and not r.relispartition`

	schemaIndexes = `
select concat_ws(' ', 'index', pg_get_indexdef(i.indexrelid), case when not i.indisvalid then 'invalid' end)
from pg_index i join pg_class r on r.oid = i.indrelid where r.relnamespace = 'tidemark'::regnamespace and not r.relispartition`

	schemaPartitions = `
select concat_ws(' ', 'partition', c.oid::regclass, 'of', i.inhparent::regclass, pg_get_expr(c.relpartbound, c.oid))
from pg_class c join pg_inherits i on i.inhrelid = c.oid where c.relnamespace = 'tidemark'::regnamespace and c.relkind in ('r', 'p')`

	schemaSequences = `
select concat_ws(' ', 'sequence', s.seqrelid::regclass, s.seqtypid::regtype, 'from', s.seqmin, 'start', s.seqstart, 'by', s.seqincrement, 'cache', s.seqcache, case when s.seqcycle then 'cycle' end)
from pg_sequence s join pg_class c on c.oid = s.seqrelid where c.relnamespace = 'tidemark'::regnamespace`

	schemaFunctions = `
select concat_ws(' ', 'function', p.proname || '(' || pg_get_function_arguments(p.oid) || ')', 'returns ' || pg_get_function_result(p.oid), l.lanname,
	case p.provolatile when 'i' then 'immutable' when 's' then 'stable' else 'volatile' end, case when p.prosecdef then 'security definer' end,
	case when p.proisstrict then 'strict' end, case p.proparallel when 's' then 'parallel safe' when 'r' then 'parallel restricted' end,
	'set ' || array_to_string(p.proconfig, ', '))
from pg_proc p join pg_language l on l.oid = p.prolang where p.pronamespace = 'tidemark'::regnamespace`

	schemaTriggers = `
select concat_ws(' ', pg_get_triggerdef(t.oid), case t.tgenabled when 'O' then null else 'enabled ' || t.tgenabled::text end)
from pg_trigger t join pg_class c on c.oid = t.tgrelid where c.relnamespace = 'tidemark'::regnamespace and not t.tgisinternal and t.tgparentid = 0`

	// Of the privileges of everyone but the owner.
	schemaGrants = `
select concat_ws(' ', 'grant', string_agg(lower(g.privilege_type), ', ' order by g.privilege_type), 'on', g.object, 'to',
	case g.grantee when 0 then 'public' else g.grantee::regrole::text end, case when g.is_grantable then 'with grant option' end)
from (
	select 'schema tidemark' as object, n.nspowner as owner, a.* from pg_namespace n, aclexplode(n.nspacl) a where n.nspname = 'tidemark'
	union all
	select case c.relkind when 'S' then 'sequence ' else 'table ' end || c.oid::regclass, c.relowner, a.* from pg_class c, aclexplode(c.relacl) a where c.relnamespace = 'tidemark'::regnamespace
	union all
	select 'column ' || c.oid::regclass || '.' || t.attname, c.relowner, a.* from pg_class c join pg_attribute t on t.attrelid = c.oid, aclexplode(t.attacl) a where c.relnamespace = 'tidemark'::regnamespace
	union all
	select 'function ' || p.proname, p.proowner, a.* from pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where p.pronamespace = 'tidemark'::regnamespace
	union all
	select 'type ' || t.typname, t.typowner, a.* from pg_type t, aclexplode(t.typacl) a where t.typnamespace = 'tidemark'::regnamespace) g
where g.grantee <> g.owner
group by g.object, g.grantee, g.is_grantable`

	// What migrations put into tables.
	schemaRows = `
select concat_ws(' ', 'row setting', key, '=', value) from tidemark.setting
union all select 'row forbidden_key ' || key || ' ' || pattern from tidemark.forbidden_key
union all select 'row heartbeat_kind ' || kind from tidemark.heartbeat_kind
union all select concat_ws(' ', 'row worker', id, worker, source, handler) from tidemark.worker
union all select concat_ws(' ', 'row worker_cursor', worker, source, shard, watermark_id) from tidemark.worker_cursor
union all select concat_ws(' ', 'row heartbeat', executor_id, kind) from tidemark.heartbeat
union all select concat_ws(' ', 'row stage', stage, reason) from tidemark.stage
union all select concat_ws(' ', 'row migration', version, name, breaking) from tidemark.migration`
)
