package migrate

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Uninstalling is what [Uninstall] drops.
type Uninstalling struct {
	Database string `json:"database"`
	// Bytes is the size of Tidemark's tables on disk.
	Bytes  int64 `json:"bytes"`
	Events int64 `json:"events"`
	// Pending and DeadLetters were neither delivered nor given up.
	Pending     int64 `json:"pending"`
	DeadLetters int64 `json:"open_dead_letters"`
	// Others are objects outside the schema tidemark that go with it: capture triggers of tables, views on Tidemark's tables.
	Others []string `json:"others"`
	// Daemons beat within the last 30 seconds; Uninstall refuses while there are any.
	Daemons []string `json:"daemons"`
	// Instances hold leases of workers now, each with its workers: daemons, and Go programs with handlers. Uninstall refuses
	// while there are any. A killed one keeps its leases until they end, by default 30 seconds.
	Instances []string `json:"instances"`
	// Executors beat within the last 30 seconds and hold no lease: such as workers of a Go program behind closed gates, each with
	// its last status. Uninstall refuses while there are any.
	Executors []string `json:"executors"`
}

// others selects objects that depend on one of the schema and are not in it. A function that only calls Tidemark is none:
// PostgreSQL does not know it.
const others = `select array(select distinct pg_describe_object(d.classid, d.objid, 0) collate "C"
	from pg_depend d cross join lateral pg_identify_object_as_address(d.classid, d.objid, 0) o
	where d.deptype in ('n', 'a') and not (o.object_names[1] = 'tidemark' or starts_with(o.object_names[1], 'tidemark.')) and (
		d.refclassid = 'pg_class'::regclass and exists (select from pg_class c where c.oid = d.refobjid and c.relnamespace = 'tidemark'::regnamespace)
		or d.refclassid = 'pg_proc'::regclass and exists (select from pg_proc p where p.oid = d.refobjid and p.pronamespace = 'tidemark'::regnamespace)
		or d.refclassid = 'pg_type'::regclass and exists (select from pg_type t where t.oid = d.refobjid and t.typnamespace = 'tidemark'::regnamespace))
	order by 1)`

// WouldUninstall returns what Uninstall would drop. It changes nothing. The role of conn needs SET on tidemark_owner.
func WouldUninstall(ctx context.Context, conn *pgx.Conn) (u Uninstalling, err error) {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return u, err
	}
	u, err = uninstalling(ctx, tx)
	return u, errors.Join(err, tx.Rollback(ctx))
}

// uninstalling reads as the owner of the schema, which it stays for the rest of the transaction.
func uninstalling(ctx context.Context, tx pgx.Tx) (u Uninstalling, err error) {
	owner, err := schemaOwner(ctx, tx)
	if err != nil {
		return u, err
	}
	if owner == "" {
		return u, errors.New("nothing is installed in this database")
	}
	if _, err := prefixOf(owner); err != nil {
		return u, err
	}
	if _, err := tx.Exec(ctx, "set local role "+owner); err != nil {
		return u, err
	}
	err = tx.QueryRow(ctx, `select current_database(),
		(select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint from pg_class c where c.relnamespace = 'tidemark'::regnamespace and c.relkind = 'r'),
		(select count(*) from tidemark.outbox), (select count(*) from tidemark.pending),
		(select count(*) from tidemark.dead_letter l where l.resolved_at is null),
		array(select h.executor_id from tidemark.heartbeat h where h.executor_id like 'daemon/%' and h.last_status <> 'stopped'
			and h.last_beat_at > clock_timestamp() - interval '30 seconds' order by 1),
		array(select format('%s (%s)', h.lease_owner, string_agg(distinct c.worker, ', ' order by c.worker))
			from tidemark.worker_cursor c join tidemark.heartbeat h on h.executor_id = tidemark.executor_id(c.worker, c.source, c.shard)
			where h.lease_owner is not null and h.lease_until > clock_timestamp() group by h.lease_owner order by 1),
		array(select format('%s (%s)', h.executor_id, h.last_status) from tidemark.heartbeat h where h.executor_id not like 'daemon/%'
			and coalesce(h.last_status, '') not in ('released', 'stopped') and h.last_beat_at > clock_timestamp() - interval '30 seconds'
			and coalesce(h.lease_until <= clock_timestamp(), true) order by 1), (`+others+`)`).
		Scan(&u.Database, &u.Bytes, &u.Events, &u.Pending, &u.DeadLetters, &u.Daemons, &u.Instances, &u.Executors, &u.Others)
	return u, err
}

// Uninstall drops the schema tidemark with all events, evidence and configuration, and what depends on it: see [WouldUninstall].
// Roles stay, since other databases may use them, and hold nothing in this database. It refuses while a daemon runs, an instance
// holds a lease, or an executor has beaten within the last 30 seconds.
func Uninstall(ctx context.Context, conn *pgx.Conn) error {
	return waited(pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		u, err := uninstalling(ctx, tx)
		if err != nil {
			return err
		}
		if len(u.Daemons) > 0 {
			return fmt.Errorf("%s runs: stop it first", u.Daemons[0])
		}
		if len(u.Instances) > 0 {
			return fmt.Errorf("the instance %s holds leases: stop it first; one that was killed loses them by itself", u.Instances[0])
		}
		if len(u.Executors) > 0 {
			return fmt.Errorf("%s has beaten within the last 30 seconds: stop what runs it first, and wait for so long", u.Executors[0])
		}
		// The default privileges (migration 0043) would keep tidemark_owner from being dropped, from another database too.
		for _, statement := range []string{
			lock, waitForTable, "alter default privileges grant execute on functions to public", "drop schema tidemark cascade",
		} {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	}))
}
