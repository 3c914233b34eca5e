create or replace function tidemark.source_whole(snapshot jsonb, columns_ text[] default null)
returns jsonb
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    unheld constant text := (select string_agg(quote_ident(u), ', ' order by u) from jsonb_object_keys(snapshot -> '') u
                             where columns_ is null or u = any (columns_));
begin
    if unheld is not null then
        raise exception using errcode = 'TM005',
            message = format('the row is gone, and its snapshot could not hold column %s', unheld),
            hint = 'Discard the dead letter, or insert the row again.';
    end if;
    return snapshot;
end
$$;
comment on function tidemark.source_whole(jsonb, text[]) is
    'The snapshot of a row of a source, in place of the row. Raises TM005 where the snapshot lacks one of the columns_ '
    '(null: any column), since it could not hold that column.';
grant execute on function tidemark.source_whole(jsonb, text[]) to tidemark_executor;
