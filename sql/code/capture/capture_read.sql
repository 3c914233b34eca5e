-- Reads the server's statistics and the catalogs, never the table: no code of the table's owner runs.
create or replace function tidemark.capture_read(
    relation oid,
    operations text[],
    routes text,
    round tidemark.capture_round)
returns tidemark.capture_reading
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    reading tidemark.capture_reading;
begin
    select string_agg(format('%s:%s', t.id, pg_relation_filenode(t.id)), ' ' order by t.id),
           sum(pg_stat_get_vacuum_count(t.id) + pg_stat_get_autovacuum_count(t.id) + pg_stat_get_analyze_count(t.id)
               + pg_stat_get_autoanalyze_count(t.id)),
           sum(pg_stat_get_tuples_inserted(t.id)), array_agg(pg_stat_get_tuples_deleted(t.id) order by t.id),
           array_agg(pg_stat_get_live_tuples(t.id) order by t.id)
    into reading.tree, reading.rewritten, reading.inserted, reading.deleted, reading.live
    from unnest(tidemark.relation_tree(capture_read.relation)) t (id);
    reading.since := round.noted_at;
    reading.snapshot := round.snapshot;
    reading.operations := capture_read.operations;
    reading.routes := capture_read.routes;
    -- A crash of the server resets the second of them.
    reading.resets := greatest(pg_stat_get_bgwriter_stat_reset_time(), (
        select d.stats_reset from pg_stat_database d where d.datname = current_database()));
    return reading;
end
$$;
comment on function tidemark.capture_read(oid, text[], text, tidemark.capture_round) is
    'Part of tidemark.capture_recount: what the server has counted of a table by now. round: the one before.';
