package store

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"
)

// Overview is the state of the installation.
type Overview struct {
	Status  string  `json:"status" enum:"ok,warn,unknown,bad" doc:"The worst of the causes."`
	Server  Server  `json:"server"`
	Causes  []Cause `json:"causes" doc:"What is wrong, worst first."`
	Partial bool    `json:"partial,omitempty" doc:"Tables are locked, and what follows is missing."`
	Brief
	Workers []WorkerSummary `json:"workers"`
	Routes  []RouteSummary  `json:"routes"`
}

// Brief are the parts of an overview that are short: one statement reads them.
type Brief struct {
	Stage        Stage               `json:"stage"`
	Counts       Counts              `json:"counts"`
	Gates        []Gate              `json:"gates"`
	Daemons      []Daemon            `json:"daemons" doc:"The 20 that were heard last."`
	Storage      Storage             `json:"storage"`
	Replays      []RouteReplayed     `json:"replays" doc:"Those that are not over."`
	Unregistered []UnregisteredEmits `json:"unregistered"`
	Happened     []Happening         `json:"happened" doc:"What people changed and what was found in the last 24 hours, the latest first; at most 10."`
}

// Daemon is a daemon, and when it was last heard.
type Daemon struct {
	Name       string     `json:"name"`
	State      string     `json:"state" enum:"alive,silent,quiet" doc:"quiet: it was stopped."`
	Host       *string    `json:"host"`
	LastBeatAt *time.Time `json:"last_beat_at"`
}

// Storage is what the log and the server hold.
type Storage struct {
	LogBytes    int64      `json:"log_bytes" doc:"The log and its evidence, with indexes."`
	OldestAt    *time.Time `json:"oldest_at" doc:"When the oldest event of the log was emitted; null: the log is empty."`
	Slots       int64      `json:"slots" doc:"Replication slots that no one uses."`
	SlotBytes   int64      `json:"slot_bytes" doc:"WAL that the one furthest behind of them keeps."`
	Prepared    int64      `json:"prepared" doc:"Prepared transactions of this database."`
	Connections int64      `json:"connections" doc:"To all databases of the server."`
	Most        int64      `json:"most_connections"`
}

// Happening is a change that a person made, or a finding.
type Happening struct {
	At      time.Time  `json:"at"`
	What    string     `json:"what"`
	Who     *string    `json:"who" doc:"null: Tidemark, which found it."`
	Reason  *string    `json:"reason"`
	Finding *int64     `json:"finding" doc:"Its number; null: a change."`
	Over    *time.Time `json:"over" doc:"When the finding was over."`
}

// NotCompiled switches JIT off in this transaction: with hundreds of routes the server would compile the views, which takes ten times
// as long as to read them.
func (db *DB) NotCompiled(ctx context.Context) error {
	_, err := db.querier.Exec(ctx, `select set_config('jit', 'off', true)`)
	return err
}

// Most is how much of an overview is wanted; 0: all of it.
type Most struct {
	Causes  int `query:"causes" minimum:"1" default:"100" doc:"At most so many causes, the worst."`
	Skip    int `query:"skip" minimum:"0" doc:"Leave out so many of the worst causes, to read on."`
	Routes  int `query:"routes" minimum:"1" default:"100" doc:"At most so many routes, those with most dead letters, then those with most that waits."`
	Workers int `query:"workers" minimum:"1" default:"100" doc:"At most so many cursors of workers, those furthest behind."`
}

// Overview reads the state of the installation. Causes are not cut: how many there are is of interest too. Where tables of Tidemark
// are locked the rest would wait for them: it is left out.
func (db *DB) Overview(ctx context.Context, m Most) (o Overview, err error) {
	causes, err := db.Causes(ctx)
	if err != nil {
		return o, err
	}
	if o.Judge(causes); o.Partial {
		o.Server, err = db.Server(ctx)
		return o, err
	}
	err = InTurn(
		func() error { return db.ReadParts(ctx, &o, m) },
		func() error { return db.ReadRoutes(ctx, &o, m) },
	)
	return o, err
}

// Judge tells what is wrong. Where tables are locked, what else was read is not all of it: it is left out.
func (o *Overview) Judge(causes []Cause) {
	o.Status, o.Causes = "ok", causes
	if len(causes) > 0 {
		o.Status = causes[0].Status
	}
	if o.Partial = slices.ContainsFunc(causes, func(c Cause) bool { return c.Cause == "tables_locked" }); o.Partial {
		o.Brief, o.Workers = Brief{Unregistered: []UnregisteredEmits{}}, nil
	}
}

// ReadParts reads what does not depend on the causes. The server is known even where the others cannot be read.
func (db *DB) ReadParts(ctx context.Context, o *Overview, m Most) error {
	return InTurn(
		func() (err error) { o.Server, err = db.Server(ctx); return err },
		func() (err error) { o.Brief, err = db.brief(ctx); return err },
		func() (err error) {
			if m.Workers == 0 {
				o.Workers, err = db.WorkerSummaries(ctx, Part{})
			} else {
				o.Workers, err = db.workersBehind(ctx, m.Workers)
			}
			return err
		},
	)
}

// ReadRoutes reads the routes, those in trouble first, once the causes are known.
func (db *DB) ReadRoutes(ctx context.Context, o *Overview, m Most) (err error) {
	o.Routes, err = db.routesOf(ctx, o.Causes, m.Routes)
	return err
}

// brief reads the short parts of an overview.
func (db *DB) brief(ctx context.Context) (b Brief, err error) {
	text, err := value[[]byte](ctx, db, `select json_build_object(
		'stage', (select to_json(x) from (`+stage+`) x),
		'counts', (select to_json(x) from (`+figures+`) x),
		'gates', (select coalesce(json_agg(x), '[]') from (`+gates+`) x),
		'daemons', (select coalesce(json_agg(x), '[]') from (
			select substr(h.executor_id, 8) as name, h.state, h.payload ->> 'host' as host, h.last_beat_at
			from tidemark.heartbeat_health h where h.executor_id like 'daemon/%' order by h.last_beat_at desc nulls last limit 20) x),
		'storage', (select to_json(x) from (`+storage+`) x),
		'replays', (select coalesce(json_agg(x), '[]') from (
			select * from tidemark.replay_summary s where s.finished_at is null order by s.id desc) x),
		'unregistered', (select coalesce(json_agg(x), '[]') from (`+unregisteredEmits+`) x),
		'happened', (select coalesce(json_agg(x), '[]') from (`+happened+`) x))`)
	if err == nil {
		err = json.Unmarshal(text, &b)
	}
	return b, err
}

const storage = `select p.log_bytes, (select o.created_at from tidemark.outbox o order by o.seq limit 1) as oldest_at,
		s.slots, s.slot_bytes, (select count(*) from pg_prepared_xacts x where x.database = current_database()) as prepared,
		(select sum(d.numbackends)::bigint from pg_stat_database d) as connections, current_setting('max_connections')::bigint as most_connections
	from (select coalesce(sum(pg_total_relation_size(i.inhrelid)), 0)::bigint as log_bytes from pg_inherits i
	      where i.inhparent in ('tidemark.outbox'::regclass, 'tidemark.attempt'::regclass, 'tidemark.decision'::regclass)) p,
	     (select count(*) as slots, coalesce(max(pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_replay_lsn()
	                                                                  else pg_current_wal_lsn() end, s.restart_lsn)), 0)::bigint as slot_bytes
	      from pg_replication_slots s where not s.active) s`

// What is shown of a longer past is one page further: only the newest rows are looked at.
const happened = `select x.* from (
		(select a.at, case when a.object like 'setting %' and a.after ? 'value' then substr(a.object, 9) || ' = ' || (a.after ->> 'value')
		                   else a.action || ' ' || a.object end as what,
		        coalesce(a.person, a.actor) as who, a.reason, null::bigint as finding, null::timestamptz as over
		 from (select * from tidemark.audit a order by a.id desc limit 200) a
		 where a.at > clock_timestamp() - interval '24 hours' and a.action <> 'sign_in_note' order by a.id desc limit 10)
		union all
		(select f.opened_at, f.kind || ' ' || f.subject, null, null, f.id, f.closed_at from tidemark.finding f
		 where f.opened_at > clock_timestamp() - interval '24 hours' order by f.id desc limit 10)) x
	order by x.at desc limit 10`

// routesOf returns how routes are doing: with most, those with most dead letters, then those with most that waits. The causes tell
// which have dead letters, and how many: nothing is counted for the routes that are left out.
func (db *DB) routesOf(ctx context.Context, causes []Cause, most int) (all []RouteSummary, err error) {
	if most == 0 {
		return db.RouteSummaries(ctx)
	}
	dead := slices.DeleteFunc(slices.Clone(causes), func(c Cause) bool { return c.Cause != "dead_letters" || c.Waiting == nil })
	slices.SortFunc(dead, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(*b.Waiting, *a.Waiting), cmp.Compare(a.Subject, b.Subject))
	})
	codes := make([]string, 0, most)
	for _, c := range dead[:min(len(dead), most)] {
		codes = append(codes, c.Subject)
	}
	if len(codes) < most {
		waiting, err := db.routesWaiting(ctx, codes, most-len(codes))
		if err != nil {
			return nil, err
		}
		codes = append(codes, waiting...)
	}
	all, err = db.RouteSummaries(ctx, codes...)
	slices.SortStableFunc(all, func(a, b RouteSummary) int {
		return cmp.Or(cmp.Compare(b.OpenDeadLetters, a.OpenDeadLetters), cmp.Compare(b.Pending, a.Pending), cmp.Compare(rank(a.State), rank(b.State)))
	})
	return all, err
}

// routesWaiting returns the routes for which most waits, other than these; where as much waits, those that deliver first.
func (db *DB) routesWaiting(ctx context.Context, others []string, most int) (codes []string, err error) {
	type row struct {
		RouteCode string `db:"route_code"`
	}
	rows, err := list[row](ctx, db, `select r.route_code from tidemark.outbound_route r
		cross join lateral (select count(*) as n from (select from tidemark.pending p where p.route_id = r.id order by p.replay, p.next_attempt_at limit 10000) p) p
		where r.route_code <> all ($1::text[])
		order by p.n desc, r.enabled desc, r.dry_run, r.route_code limit $2`, others, most)
	for _, r := range rows {
		codes = append(codes, r.RouteCode)
	}
	return codes, err
}

// rank puts routes that deliver before those that do not.
func rank(state string) int {
	switch state {
	case "live":
		return 0
	case "dry run", "paused":
		return 1
	}
	return 2
}
