create or replace function tidemark.source_split(
    plan tidemark.source_plan,
    act text,
    ids text[],
    too_long text,
    out failed tidemark.failed_row[],
    out splits integer,
    out result jsonb)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    stack integer[] := case when cardinality(ids) > 0 then array[1, cardinality(ids)] else '{}' end;
    first integer;
    last integer;
    part tidemark.source_page;
    code text;
    message text;
    culprits text[] := '{}';
    codes text[] := '{}';
    messages text[] := '{}';
begin
    splits := 0;
    if too_long is not null then
        stack := '{}';
        culprits := ids;
        codes := array_fill('57014'::text, array[cardinality(ids)]);
        messages := array_fill(too_long, array[cardinality(ids)]);
    end if;
    while cardinality(stack) > 0 loop
        first := stack[cardinality(stack) - 1];
        last := stack[cardinality(stack)];
        stack := stack[: cardinality(stack) - 2];
        begin
            part := tidemark.source_read(plan, act, ids[first : last]);
            result := tidemark.jsonb_add(result, part.result);
        exception when others or assert_failure then
            get stacked diagnostics code = returned_sqlstate, message = message_text;
            if tidemark.is_transient(code) or code in ('42P01', '42703', '42883', '0A000', '42501', '42804', '42601', 'TM001') then
                raise;
            end if;
            splits := splits + 1;
            if first = last then
                culprits := culprits || ids[first];
                codes := codes || code;
                messages := messages || message;
            else
                stack := stack || array[(first + last) / 2 + 1, last, first, (first + last) / 2];
            end if;
        end;
    end loop;
    failed := '{}';
    if cardinality(culprits) > 0 then
        part := tidemark.source_read(plan, 'rows', culprits);
        failed := array(
            select row(r ->> 'id', (r ->> 'ts')::timestamptz, r -> 'row', f.code, f.message, false, null)::tidemark.failed_row
            from jsonb_array_elements(part.result) r
            join unnest(culprits, codes, messages) f (id, code, message) on f.id = r ->> 'id');
    end if;
end
$$;
comment on function tidemark.source_split(tidemark.source_plan, text, text[], text) is 'Hands the rows ids of a page to the handler, all together; where that fails, their halves, down to the rows that fail alone. too_long: none is handed over, all have failed with this message. result sums what the handler returned.';
revoke all on function tidemark.source_split(tidemark.source_plan, text, text[], text) from public;
grant execute on function tidemark.source_split(tidemark.source_plan, text, text[], text) to tidemark_executor;
