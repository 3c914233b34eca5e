-- The limits are a day inside both ends of the timestamp range, so that no time zone moves a value out of the range of
-- timestamptz.
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
    'The time of a row of tidemark.source_row, as SQL. stored: the column. zone: SQL that converts its type to '
    'timestamptz, and back. at: the row''s timestamptz, which fails for no row: a time without zone in the first or '
    'last day of the timestamp range becomes infinite. early, late: whether it is -infinity or infinity, in a form '
    'that an index supports. Without a timestamp_column at is null, and so are the others except zone.';
grant execute on function tidemark.source_time(tidemark.source) to tidemark_reader, tidemark_executor;
