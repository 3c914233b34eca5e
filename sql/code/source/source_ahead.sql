-- As the page of the step forward in tidemark.source_query, for one row of it. Parameters: $1, $2 the watermark (timestamp,
-- id), $3 the horizon, $4 holes. Columns: true, the row's time, and for the safety sequence its number.
create or replace function tidemark.source_ahead(definition tidemark.source)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    rel constant text := tidemark.source_row(definition);
    id constant text := format('tidemark_row.%I', definition.id_column) || case when definition.id_collate_c then ' collate "C"' else '' end;
    time_ constant record := tidemark.source_time(definition);
begin
    if definition.safety = 'sequence' then
        return format(
            'select true, x.at, x.id from (
    (select x.* from unnest($4::int8multirange) hole (span) cross join lateral (
        select %3$s as at, %2$s::bigint as id from %1$s
        where %2$s >= lower(hole.span) and %2$s < upper(hole.span) order by %2$s limit 1) x limit 1)
    union all
    (select %3$s, %2$s::bigint from %1$s where %2$s > $2::bigint order by %2$s limit 1)) x limit 1',
            rel, id, time_.at);
    end if;
    return format(
        'select true, %7$s, null::bigint from %1$s
where (%2$s, %3$s) > (($1%4$s), $2::%5$s) and %2$s < ($3%4$s)%6$s order by %2$s, %3$s limit 1',
        rel, time_.stored, id, time_.zone, definition.id_type,
        case when definition.time_zone is not null then format(' and %s < $3 and not %s', time_.at, time_.early) else '' end, time_.at);
end
$$;
comment on function tidemark.source_ahead(tidemark.source) is 'The statement that names the first row that a pass forward over a source with the safety sequence, clock or declared would read, by its time and (safety sequence) number; no row: it would read nothing.';
grant execute on function tidemark.source_ahead(tidemark.source) to tidemark_reader, tidemark_executor;
