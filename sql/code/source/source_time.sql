-- A day from both ends of what a timestamp can be: no zone's clock leads from within them out of what a timestamptz can
-- be.
create or replace function tidemark.source_time(
    definition tidemark.source,
    out stored text,
    out zone text,
    out at text,
    out early text,
    out late text)
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    stored := 'tidemark_row.' || quote_ident(definition.timestamp_column);
    zone := coalesce(' at time zone ' || quote_literal(definition.time_zone), '');
    if stored is null then
        at := 'null::timestamptz';
    elsif definition.time_zone is null then
        at := stored;
        early := stored || ' = ''-infinity''';
        late := stored || ' = ''infinity''';
    else
        early := stored || ' < ''4714-11-25 00:00:00 BC''';
        late := stored || ' >= ''294276-12-31 00:00:00''';
        at := format('(case when %s then ''-infinity'' when %s then ''infinity'' else %s%s end)', early, late, stored,
                     zone);
    end if;
end
$$;
comment on function tidemark.source_time(tidemark.source) is
    'The time of a row of tidemark.source_row, as SQL. stored: the column; zone: what makes its type of a '
    'timestamptz, and a timestamptz of it; at: the row''s timestamptz, which fails for no row: a time without zone in '
    'the first or last day of what a timestamp can be is infinite; early, late: whether it is -infinity or infinity, '
    'as an index can tell. Without a timestamp_column at is null, and the others are null but zone.';
grant execute on function tidemark.source_time(tidemark.source) to tidemark_reader, tidemark_executor;
