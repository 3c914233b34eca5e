package test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// doctored are tables of an application, as good as they can be; the doctor's tests break them.
const doctored = `
create table public.numbered (id bigint generated always as identity primary key, kind text, at timestamptz default now());
create table public.captured (id int primary key);
create trigger captured after insert on public.captured for each statement execute function tidemark.log_is_append_only();
create table public.timed (id uuid primary key default gen_random_uuid(), kind text, at timestamptz not null default clock_timestamp());
create index timed_at on public.timed (at, id);
create table public.local (id integer primary key, at timestamp not null default (now() at time zone 'UTC'));
create index local_at on public.local (at, id);
create table public.named (id text collate ucs_basic primary key, at timestamptz not null default now());
create index named_at on public.named (at, id collate "C");
create table public.parted (id bigint generated always as identity, at timestamptz not null default now(), primary key (at, id)) partition by range (at);
create table public.parted_1 partition of public.parted default;
grant select on all tables in schema public to tidemark_executor;`

// def is a definition of a source, columns by name.
type def map[string]any

var (
	numbered = def{"table_name": "numbered", "id_column": "id", "safety": "sequence"}
	timed    = def{"table_name": "timed", "id_column": "id", "timestamp_column": "at", "safety": "clock"}
	local    = timed.with(def{"table_name": "local", "time_zone": "UTC"})
	named    = timed.with(def{"table_name": "named"})
	parted   = timed.with(def{"table_name": "parted"})
	declared = timed.with(def{"safety": "declared", "sweep_window": "2 hours"})
	capture  = def{"table_name": "captured", "id_column": "id", "safety": "capture"}
)

func (d def) with(changes def) def {
	d = maps.Clone(d)
	maps.Copy(d, changes)
	return d
}

// text is the definition as JSON, of a table in public unless it says otherwise.
func (d def) text(t *testing.T) string {
	t.Helper()
	text, err := json.Marshal(def{"schema_name": "public"}.with(d))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// complaintsOf are the doctor's lines that are not ok.
func (s session) complaintsOf(d def) []string {
	s.t.Helper()
	return column[string](s, `select concat_ws(' ', status, "check") || ': ' || detail || ' [' || hint || ']'
		from tidemark.source_check(jsonb_populate_record(null::tidemark.source, $1)) where status <> 'ok'`, d.text(s.t))
}

// What cannot be proved of a clock is said even of the best one.
const unproved = "warn set by the server: the default is "

// CU3: of good tables the doctor reports only what no check can know.
func TestDoctorPassesGoodTables(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "doctor")
	s.exec(doctored)
	for name, d := range map[string]def{"numbered": numbered, "capture": capture, "declared": declared} {
		if got := s.complaintsOf(d); len(got) > 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
	for name, d := range map[string]def{"timed": timed, "local": local, "named": named} {
		if got := s.complaintsOf(d); len(got) != 1 || !strings.HasPrefix(got[0], unproved) {
			t.Errorf("%s: %q", name, got)
		}
	}
	got := s.complaintsOf(parted)
	if len(got) != 2 || !strings.HasPrefix(got[0], "warn id unique: id is unique only together with at, by which") || !strings.HasPrefix(got[1], unproved) {
		t.Errorf("parted: %q", got)
	}
}

// sickness says what breaks a table or a definition, and what the doctor then says, as regular expressions.
var sickness = []struct {
	name, how string
	of        def
	says      []string
}{
	{"unknown table", ``, numbered.with(def{"table_name": "gone"}), []string{`^fail table: there is no table public\.gone \[Names are as the catalog spells them: `}},
	{"wrong case", ``, numbered.with(def{"table_name": "Numbered"}), []string{`^fail table: there is no table public\."Numbered" \[Did you mean public\.numbered\?\]$`}},
	{"view", `create view public.v as select * from public.numbered`, numbered.with(def{"table_name": "v"}), []string{`^fail table: public\.v is a view, not a table`}},
	{"materialized view", `create materialized view public.v as select * from public.numbered`, numbered.with(def{"table_name": "v"}), []string{`is a materialized view, not`}},
	{"foreign table", `create extension if not exists file_fdw; create server f foreign data wrapper file_fdw; create foreign table public.f (id int not null) server f options (filename '/dev/null')`, numbered.with(def{"table_name": "f"}), []string{`^fail table: public\.f is a foreign table, not`}},
	{"foreign partition", `create extension if not exists file_fdw; create server f foreign data wrapper file_fdw; drop table public.parted_1; alter table public.parted drop constraint parted_pkey; create foreign table public.f partition of public.parted default server f options (filename '/dev/null')`, parted, []string{`^fail table: public\.f is a foreign table \[`}},
	{"temporary table", `create temporary table x (id int); create or replace view public.n as select nspname from pg_namespace where oid = pg_my_temp_schema()`, def{"schema_name": "?", "table_name": "x", "id_column": "id", "safety": "sequence"}, []string{`^fail table: .*x is temporary`}},
	{"another access method", `create access method pillar type table handler heap_tableam_handler; create table public.p (id int primary key) using pillar`, numbered.with(def{"table_name": "p"}), []string{`^fail table: public\.p is stored as pillar`}},
	{"unlogged", `alter table public.numbered set unlogged`, numbered, []string{`^warn table: public\.numbered is unlogged.*\[alter table public\.numbered set logged;\]$`}},
	{"the system's", ``, def{"schema_name": "pg_catalog", "table_name": "pg_class", "id_column": "oid", "safety": "sequence"}, []string{`^fail table: pg_catalog\.pg_class is the system's`}},
	{"ours", ``, def{"schema_name": "tidemark", "table_name": "finding", "id_column": "id", "safety": "sequence"}, []string{`^fail table: tidemark\.finding is Tidemark's own`}},
	{"the log by a clock", ``, def{"schema_name": "tidemark", "table_name": "outbox", "id_column": "seq", "timestamp_column": "created_at", "safety": "clock"}, []string{`^fail table: tidemark\.outbox is Tidemark's own`}},
	{"the log", ``, def{"schema_name": "tidemark", "table_name": "outbox", "id_column": "seq", "safety": "sequence"}, nil},
	{"children", `create table public.child () inherits (public.numbered)`, numbered, []string{`^fail table: public\.numbered has children`}},
	{"reserved name", `alter table public.numbered add tidemark_row int`, numbered, []string{`^fail table: public\.numbered has a column tidemark_row`}},

	{"no such id", ``, numbered.with(def{"id_column": "ID"}), []string{`^fail id column: public\.numbered has no column "ID" \[Columns: id, kind, at\.\]$`}},
	{"id of another type", `alter table public.timed alter id drop default; alter table public.timed alter id type inet using null`, timed, []string{`^fail id column: public\.timed\.id is of type inet`}},
	{"sequence of uuids", ``, timed.with(def{"safety": "sequence"}), []string{`^fail id column: public\.timed\.id is of type uuid: numbers of a sequence`}},
	{"id that may be null", `alter table public.numbered alter id drop identity; alter table public.numbered drop constraint numbered_pkey; alter table public.numbered alter id drop not null; create unique index on public.numbered (id)`, numbered, []string{`^fail id column: public\.numbered\.id may be null.*set not null;\]$`}},
	{"id that is not unique", `alter table public.numbered drop constraint numbered_pkey`, numbered, []string{`^fail id unique: nothing makes public\.numbered\.id unique \[create unique index concurrently on public\.numbered \(id\);\]$`}},
	{"id unique for some", `alter table public.numbered drop constraint numbered_pkey; create unique index on public.numbered (id) where kind = 'a'`, numbered, []string{`^fail id unique: `}},
	{"id unique with another", `alter table public.numbered drop constraint numbered_pkey, add primary key (id, at)`, numbered, []string{`^fail id unique: `}},
	{"no such timestamp", ``, timed.with(def{"timestamp_column": "born"}), []string{`^fail timestamp column: public\.timed has no column "born"`}},
	{"no timestamp at all", ``, timed.with(def{"timestamp_column": nil}), []string{`^fail timestamp column: the safety clock needs a timestamp`}},
	{"timestamp of another type", `alter table public.timed alter at drop default, alter at type date`, timed, []string{`^fail timestamp column: at date, not null`}},
	{"no such keys", ``, numbered.with(def{"key_columns": []string{"kind", "sort"}, "group_key": []string{"family"}}), []string{`^fail key columns: public\.numbered has no column "sort", "family"`}},

	{"no default", `alter table public.numbered alter id drop identity`, numbered, []string{`^fail sequence: public\.numbered\.id has no default`}},
	{"another default", `alter table public.numbered alter id drop identity; create sequence public.s; alter table public.numbered alter id set default nextval('public.s') * 2`, numbered, []string{`^fail sequence: public\.numbered\.id has the default \(nextval`}},
	{"serial", `alter table public.numbered alter id drop identity; create sequence public.s; alter table public.numbered alter id set default nextval('public.s')`, numbered, []string{`^warn numbers by hand: the id is a default: an insert may give`}},
	{"by default", `alter table public.numbered alter id set generated by default`, numbered, []string{`^warn numbers by hand: .*\[alter table public\.numbered alter column id set generated always;\]$`}},
	{"cache", `alter table public.numbered alter id set cache 20`, numbered, []string{`^fail sequence: public\.numbered_id_seq has cache 20: .*\[alter sequence public\.numbered_id_seq cache 1 increment 1 no cycle;`}},
	{"increment and cycle", `alter table public.numbered alter id set increment 10 set cycle`, numbered, []string{`^fail sequence: public\.numbered_id_seq has increment 10: .* cycle: `}},
	{"shared sequence", `create table public.other (id bigint default nextval('public.numbered_id_seq'))`, numbered, []string{`^fail sequence is its own: public\.numbered_id_seq also numbers public\.other\.id`}},
	{"function that takes numbers", `create function public.take() returns bigint language sql as $$ select nextval('public.numbered_id_seq') $$`, numbered, []string{`^warn numbers by hand: these functions take numbers: public\.take\(\)`}},
	{
		"numbers of a partition", `create table public.n (id bigint generated by default as identity primary key) partition by range (id); create table public.n_1 partition of public.n default; create sequence public.s;
		do $$ begin if current_setting('server_version_num')::int >= 170000 then alter table public.n alter id drop identity; create sequence public.n_id_seq; alter table public.n alter id set default nextval('public.n_id_seq'); end if; end $$;
		alter table public.n_1 alter id set default nextval('public.s'); grant select on public.n to tidemark_executor`,
		numbered.with(def{"table_name": "n"}),
		[]string{`^fail numbers of partitions: in public\.n_1 `, `^warn numbers by hand`},
	},
	{"numbers above the sequence", `insert into public.numbered (id) overriding system value values (7)`, numbered, []string{`^fail numbers in use: the highest id is 7, and the sequence is only at its beginning.*\[select setval\('public\.numbered_id_seq', \(select max\(id\) from public\.numbered\)\);\]$`}},

	{"published elsewhere", `create subscription nowhere connection 'host=nowhere.invalid dbname=x' publication p with (connect = false); insert into pg_subscription_rel values ((select oid from pg_subscription), 'public.timed'::regclass, 'r', null)`, timed, []string{`^fail replication: public\.timed is written by a subscription: its timestamps`, unproved}},
	{"numbers published elsewhere", `create subscription nowhere connection 'host=nowhere.invalid dbname=x' publication p with (connect = false); insert into pg_subscription_rel values ((select oid from pg_subscription), 'public.numbered'::regclass, 'r', null)`, numbered, []string{`^fail replication: public\.numbered is written by a subscription: its numbers`}},
	{"others' transactions are hidden", `revoke pg_read_all_stats from tidemark_owner`, timed, []string{`^fail transaction starts: .*\[grant pg_read_all_stats to tidemark_owner;\]$`, unproved}},
	{"declared without sweep", ``, declared.with(def{"sweep_window": nil}), []string{`^warn safety: declared, without a sweep: a row that is committed after`}},
	{"unknown safety", ``, timed.with(def{"safety": "luck"}), []string{`^fail safety: there is no safety "luck"`}},
	{"sweep of a sequence", ``, numbered.with(def{"sweep_window": "1 hour"}), []string{`^fail sweep: `}},
	{"no capture trigger", `drop trigger captured on public.captured`, capture, []string{`^warn capture trigger: no trigger writes what is inserted into public.captured`}},
	{"disabled capture trigger", `alter table public.captured disable trigger captured`, capture, []string{`^fail capture trigger: .* is disabled on public.captured`}},
	{"capture of a subscription", `create subscription nowhere connection 'host=nowhere.invalid dbname=x' publication p with (connect = false); insert into pg_subscription_rel values ((select oid from pg_subscription), 'public.captured'::regclass, 'r', null)`, capture, []string{`^fail replication: public\.captured is written by a subscription, for which statement triggers do not fire`}},
	{"capture of partitions", ``, def{"table_name": "parted", "id_column": "id", "safety": "capture"}, []string{`^warn id unique`, `^fail primary key: the primary key of public.parted is not id alone`, `^warn capture trigger`, `^warn partitions: `}},
	{"capture of another column", `alter table public.captured drop constraint captured_pkey, add unique (id), add other uuid primary key default gen_random_uuid()`, capture, []string{`^fail primary key: the primary key of public.captured is not id alone.*\[Name the column`}},

	{"timestamp that may be null", `alter table public.timed alter at drop not null`, timed, []string{`^warn timestamp not null: at may be null: such rows are read by id alone`, unproved}},
	{"no time zone", ``, local.with(def{"time_zone": nil}), []string{`^fail time zone: public\.local\.at is without time zone`, unproved}},
	{"zone for a zoned one", ``, timed.with(def{"time_zone": "UTC"}), []string{`^fail time zone: at is with time zone`, unproved}},
	{"unknown zone", ``, local.with(def{"time_zone": "UTC+3"}), []string{`^fail time zone: "UTC\+3" is no time zone`, unproved}},
	{"zone with summer time", ``, local.with(def{"time_zone": "Europe/Berlin"}), []string{`^fail time zone: in Europe/Berlin clocks are put back.*\[Have it written in UTC`, unproved}},
	{"declared with summer time", ``, local.with(def{"time_zone": "Europe/Berlin", "safety": "declared", "sweep_window": "30 min"}), []string{`^warn time zone: in Europe/Berlin`}},
	{"default of another zone", `alter table public.local alter at set default (now() at time zone 'Asia/Tokyo')`, local, []string{`^fail time zone: the default writes Asia/Tokyo, and time_zone is UTC`, unproved}},
	{"default of the session's zone", `alter table public.local alter at set default now()`, local, []string{`^warn time zone: the default now\(\) depends on the TimeZone of each session.*set default \(now\(\) at time zone 'UTC'\);\]$`, unproved}},
	{"default that lost its zone", `alter table public.timed alter at set default (now() at time zone 'UTC')`, timed, []string{`^fail time zone: at is with time zone, but its default .* is not`, unproved}},
	{"nobody sets the time", `alter table public.timed alter at drop default`, timed, []string{`^fail set by the server: at has no default.*set default now\(\); or declared`}},
	{"something else sets the time", `alter table public.timed alter at set default date_trunc('hour', now())`, timed, []string{`^fail set by the server: the default of at is date_trunc`}},
	{"the call's time", `alter table public.timed alter at set default statement_timestamp()`, timed, []string{`^fail set by the server: the default is statement_timestamp\(\): in a procedure.*set default now\(\); or declared`}},
	{"the call's time in a zone", `alter table public.local alter at set default (statement_timestamp() at time zone 'UTC')`, local, []string{`^fail set by the server: the default is .*set default \(now\(\) AT TIME ZONE 'UTC'::text\); or declared`}},
	{"a trigger sets the time", `alter table public.timed alter at drop default; create function public.f() returns trigger language plpgsql as $$ begin new.at := now(); return new; end $$; create trigger stamp before insert on public.timed for each row execute function public.f()`, timed, []string{`^warn set by the server: the default is none; a trigger`, `^warn triggers and rules: stamp can change`}},
	{"margin under the precision", `alter table public.timed alter at type timestamptz(0)`, timed.with(def{"margin": "0.5 seconds"}), []string{unproved, `^fail margin: the margin is 00:00:00\.5, and a timestamp of 0 digits is up to 00:00:01 off`}},
	{"margin under the default's precision", `alter table public.timed alter at set default current_timestamp(1)`, timed.with(def{"margin": "0.01 seconds"}), []string{unproved, `^fail margin: .* of 1 digits`}},
	{"small margin", ``, timed.with(def{"margin": "0.1 seconds"}), []string{unproved, `^warn margin: `}},

	{"no index", `drop index public.timed_at`, timed, []string{unproved, `^warn index: no index on \(at, id\): .*\[create index concurrently on public\.timed \(at, id\);\]$`}},
	{"no index for many rows", `drop index public.timed_at; update pg_class set reltuples = 100001 where oid = 'public.timed'::regclass`, timed, []string{unproved, `^fail index: .* of about 100001 rows`}},
	{"index the other way round", `drop index public.timed_at; create index on public.timed (id, at)`, timed, []string{unproved, `^warn index: no index on`}},
	{"index of mixed order", `drop index public.timed_at; create index i on public.timed (at, id desc)`, timed, []string{unproved, `^warn index: no index on \(at, id\); public\.i is of mixed order`}},
	{"index of some rows", `drop index public.timed_at; create index i on public.timed (at, id) where kind = 'a'`, timed, []string{unproved, `^warn index: .*; public\.i is only of some rows`}},
	{"invalid index", `update pg_index set indisvalid = false where indexrelid = 'public.timed_at'::regclass`, timed, []string{unproved, `^warn index: .*; public\.timed_at is invalid.*\[reindex index concurrently public\.timed_at;\]$`}},
	{"index in another collation", `drop index public.named_at; create index i on public.named (at, id)`, named, []string{unproved, `^warn index: no index on \(at, id collate "C"\); public\.i is of another collation.*\(at, id collate "C"\);\]$`}},
	{"index of partitions", `alter table public.parted drop constraint parted_pkey, add primary key (id, at)`, parted, []string{`^warn id unique`, unproved, `^warn index: .*\[create index on only public\.parted`}},

	{"no right", `revoke select on public.numbered from tidemark_executor`, numbered, []string{`^warn rights: .*\[grant select on public\.numbered to tidemark_executor;\]$`}},
	{"no right to enter", `revoke usage on schema public from public`, numbered, []string{`^warn rights: .*\[grant usage on schema public to tidemark_executor;\]$`}},
	{"row security", `alter table public.numbered enable row level security`, numbered, []string{`^warn row security: on: a worker that is run by a role`}},

	{"filter with a typo", ``, numbered.with(def{"filter": "knd = 'a'"}), []string{`^fail filter: the filter does not compile: column "knd" does not exist`}},
	{"filter that is no condition", ``, numbered.with(def{"filter": "kind"}), []string{`^fail filter: .*must be type boolean`}},
	{"filter that ends early", ``, numbered.with(def{"filter": "true) or (true"}), []string{`^fail filter: the filter closes a "\)" that it has not opened: true\) or \(true`}},
	{"filter that ends early in brackets", ``, numbered.with(def{"filter": "true] or array[true"}), []string{`^fail filter: the filter closes a "\]" that it has not opened`}},
	{"filter with a comment", ``, numbered.with(def{"filter": "true -- all"}), []string{`^fail filter: the filter holds a comment: true -- all `}},
	{"filter that asks others behind comments", ``, numbered.with(def{"filter": "true /* ' */ and exists (select from public.timed) /* ' */"}), []string{`^fail filter: the filter holds a comment`}},
	{"filter that asks others", ``, numbered.with(def{"filter": "exists (select from public.timed)"}), []string{`^fail filter: the filter asks more than the row`}},
	{"filter with a parameter", ``, numbered.with(def{"filter": "id > $1"}), []string{`^fail filter: the filter has a \$`}},

	{"rule", `create rule r as on insert to public.numbered do also select 1`, numbered, []string{`^warn triggers and rules: r can change a row`}},
	{"null timestamps", `alter table public.timed alter at drop not null; insert into public.timed (at) values (null)`, timed, []string{`^warn timestamp not null`, unproved, `^warn timestamps: there are rows whose timestamp is null: they`}},
	{"infinite timestamps", `insert into public.timed (at) values ('-infinity')`, timed, []string{unproved, `^warn timestamps: there are rows whose timestamp is infinite`}},
	{"timestamps in the future", `insert into public.timed (at) values (now() + interval '1 hour')`, timed, []string{unproved, `^fail timestamps: there are timestamps in the future`}},
	{"declared in the future", `insert into public.timed (at) values (now() + interval '1 hour')`, declared, []string{`^warn timestamps: there are timestamps in the future`}},
	{"local future", `insert into public.local values (1, (now() at time zone 'UTC') + interval '1 hour')`, local, []string{unproved, `^fail timestamps: `}},
}

func TestDoctorSeesEachSickness(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "doctor")
	s.exec(doctored + `set allow_system_table_mods = on`)
	for _, sick := range sickness {
		s.begin()
		if sick.how != "" {
			s.exec(sick.how)
		}
		if sick.of["schema_name"] == "?" {
			sick.of["schema_name"] = one[string](s, `select nspname::text from public.n`)
		}
		got := s.complaintsOf(sick.of)
		if !slices.EqualFunc(got, sick.says, func(line, pattern string) bool {
			return regexp.MustCompile(pattern).MatchString(line)
		}) {
			t.Errorf("%s:\n got %q\nwant %q", sick.name, got, sick.says)
		}
		s.rollback()
	}
}
