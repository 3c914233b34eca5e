create or replace function tidemark.river_health()
returns table (name text, readable boolean, waiting bigint, retrying bigint, oldest_seconds bigint, dead bigint,
               dead_seconds bigint)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set row_security = off
as $$
declare
    jobs regclass;
    got record;
begin
    for jobs in
        select distinct t.t from (
            select tidemark.river_table('{}') as t
            union all
            select tidemark.river_table(r.options) from tidemark.outbound_route r where r.target_kind = 'river') t
        where t.t is not null
    loop
        name := (select format('%I.%I', n.nspname, c.relname) from pg_class c
                 join pg_namespace n on n.oid = c.relnamespace where c.oid = jobs);
        readable := has_table_privilege(jobs, 'select')
            and has_schema_privilege((select c.relnamespace from pg_class c where c.oid = jobs), 'usage');
        if readable then
            begin
                -- Any role that may create a table in the schema may have created this one. Use River's own indexes
                -- over the state, and count at most 10000 jobs of each.
                got := tidemark.source_look(jobs, format('select
                       (select count(*) from (select from %1$s j where j.state = ''available'' limit 10000) j)
                           as waiting,
                       (select count(*) from (select from %1$s j where j.state = ''retryable'' limit 10000) j)
                           as retrying,
                       (select greatest(extract(epoch from clock_timestamp()
                                                - min(tidemark.as_is(j.scheduled_at, null::timestamptz))), 0)::bigint
                        from (select j.scheduled_at from %1$s j where j.state = ''available'' limit 10000) j)
                           as oldest_seconds,
                       (select count(*) from (select from %1$s j where j.state = ''discarded'' limit 10000) j) as dead,
                       (select extract(epoch from clock_timestamp()
                                       - max(tidemark.as_is(j.finalized_at, null::timestamptz)))::bigint
                        from (select j.finalized_at from %1$s j
                              where j.state = ''discarded'' and j.finalized_at is not null limit 10000) j)
                           as dead_seconds', jobs));
                waiting := got.waiting; retrying := got.retrying; oldest_seconds := got.oldest_seconds;
                dead := got.dead; dead_seconds := got.dead_seconds;
            exception when others then
                -- Another table has this name. It must not break the report on the others.
                readable := false;
            end;
        end if;
        if not readable then
            waiting := null; retrying := null; oldest_seconds := null; dead := null; dead_seconds := null;
        end if;
        return next;
    end loop;
end
$$;
comment on function tidemark.river_health() is
    'Jobs of River, a row for each of its tables that is in the schema public or that a route names; no row: River is '
    'not installed. readable false: this role may not read the table, the table is not River''s, or its owner''s code '
    'would run (tidemark.source_denied). waiting, retrying and dead (discarded) count at most 10000; oldest_seconds is '
    'the waiting time of the oldest job that may run, dead_seconds the time since a job was last discarded.';
grant execute on function tidemark.river_health() to tidemark_reader, tidemark_executor;
