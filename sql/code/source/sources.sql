-- public
create or replace view tidemark.sources as
select s.source, format('%I.%I', s.schema_name, s.table_name) as "table", s.id_column, s.timestamp_column, s.safety,
       s.sweep_window, coalesce(c.workers, '{}') as workers, c.lag, c.verified_through,
       coalesce(c.pending, 0) as pending, coalesce(c.open_dead_letters, 0) as open_dead_letters, s.description
from tidemark.source s
left join (
    select c.source, array_agg(distinct c.worker) as workers, max(c.lag) as lag,
           -- All workers have verified the source up to the earliest of their times.
           case when count(*) = count(c.verified_through) then min(c.verified_through) end as verified_through,
           sum(c.pending)::bigint as pending, sum(c.open_dead_letters)::bigint as open_dead_letters
    from tidemark.source_cursor c group by c.source) c on c.source = s.source;
comment on view tidemark.sources is
    'Each source with the workers that read it, the lag of the slowest worker, and the time up to which all workers '
    'have verified it by count.';
grant select on tidemark.sources to tidemark_reader, tidemark_executor;
