-- Not a security definer: the table is read with the rights of the role that runs the worker.
create or replace function tidemark.source_refused(plan tidemark.source_plan, ids text[], codes text[], messages text[])
returns tidemark.failed_row[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    s tidemark.source := plan.source;
    items jsonb[] := '{}';
    item jsonb;
    id text;
begin
    -- Drop the filter: the rows were handed over, or the filter itself failed.
    s.filter := null;
    plan.source := s;
    begin
        items := array(select jsonb_array_elements((tidemark.source_read(plan, 'kept', source_refused.ids)).result));
    exception when others or assert_failure then
        if tidemark.is_transient(sqlstate) then
            raise;
        end if;
        foreach id in array source_refused.ids loop
            item := tidemark.source_kept(plan, id);
            if item is not null then
                items := items || item;
            end if;
        end loop;
    end;
    return array(
        select row(f.id, (r ->> 'ts')::timestamptz, r -> 'row', f.code,
            -- The server's message about a value may quote the value.
            coalesce((select 'the row cannot be read as jsonb: column '
                             || string_agg(quote_ident(u.key), ', ' order by u.key)
                      from jsonb_each_text(r -> 'row' -> '') u
                      where u.value = f.code), f.message), false, null)::tidemark.failed_row
        from unnest(items) r
        join unnest(source_refused.ids, source_refused.codes,
                    source_refused.messages) f (id, code, message) on f.id = r ->> 'id');
end
$$;
comment on function tidemark.source_refused(tidemark.source_plan, text[], text[], text[]) is
    'The rows of a page that failed one by one, each with its snapshot, with SQLSTATEs and messages. Where a column '
    'cannot be read as jsonb, the message names the column instead, since the server''s message may quote it. Rows '
    'that are gone are left out.';
grant execute on function tidemark.source_refused(tidemark.source_plan, text[], text[], text[]) to tidemark_executor;
