package store

import "context"

// Mark is a text that stays the same until something changes that people look at: an event is emitted, a worker records what it did, a
// command runs, a job goes on, something is found, fails, is resolved, or is set by a person. A heartbeat alone changes nothing. Each part
// is the end of an index, or a table that is as long as the configuration: it costs the same whatever has happened.
func (db *DB) Mark(ctx context.Context) (string, error) {
	return value[string](ctx, db, `select hashtextextended(concat_ws(' ',
			(select max(o.seq) from tidemark.outbox o),
			(select max(u.id) from tidemark.emit_unregistered u),
			(select max(a.id) from tidemark.audit a),
			(select max(f.id) from tidemark.finding f),
			(select max(f.closed_at) from tidemark.finding f where f.closed_at is not null),
			(select max(l.id) from tidemark.dead_letter l),
			(select max(l.last_failed_at) from tidemark.dead_letter l where l.resolved_at is null),
			(select max(c.processed_at) from tidemark.command_claim c),
			(select max(g.id) from tidemark.capture_gap g),
			(select count(*) from tidemark.capture_gap g where g.resolved_at is null),
			(select array_agg(array[j.id, j.done] order by j.id) from tidemark.letter_job j where j.finished_at is null),
			(select array_agg(array[j.id, j.passed_seq, j.staged, j.sent, j.failed] order by j.id)
			 from tidemark.replay_job j where j.finished_at is null),
			(select array_agg(array[b.id, b.rows] order by b.id)
			 from tidemark.capture_backfill b where b.finished_at is null and b.cancelled_at is null),
			(select sum(hashtextextended(concat_ws(' ', c.worker, c.source, c.shard, c.phase, c.paused_at, c.events_seen,
					c.attempts_written, c.dead_lettered, c.settles), 0)) from tidemark.worker_cursor c),
			(select sum(hashtextextended(concat_ws(' ', h.executor_id, h.last_status, h.lease_owner), 0))
			 from tidemark.heartbeat h)), 0)::text`)
}
