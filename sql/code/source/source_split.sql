create or replace function tidemark.source_split(
    plan tidemark.source_plan,
    act text,
    ids text[],
    out failed tidemark.failed_row[],
    out splits integer,
    out result jsonb)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    -- Two rows may have the same id (of a partitioned table, in two partitions): each part reads both.
    items constant text[] := array(select u.id from unnest(ids) with ordinality u (id, ord)
                                   group by u.id order by min(u.ord));
    stack integer[] := case when cardinality(items) > 0 then array[1, cardinality(items)] else '{}' end;
    first integer;
    last integer;
    part tidemark.source_page;
    began timestamptz;
    code text;
    message text;
    late boolean;
    culprits text[] := '{}';
    codes text[] := '{}';
    messages text[] := '{}';
begin
    splits := 0;
    while cardinality(stack) > 0 loop
        first := stack[cardinality(stack) - 1];
        last := stack[cardinality(stack)];
        stack := stack[: cardinality(stack) - 2];
        began := clock_timestamp();
        begin
            part := tidemark.source_read(plan, act, items[first : last]);
            -- The number of groups does not grow when the page is halved.
            result := tidemark.jsonb_add(case jsonb_typeof(result) when 'object' then result - 'groups' else result end,
                                         part.result);
        exception when others or assert_failure or query_canceled then
            get stacked diagnostics code = returned_sqlstate, message = message_text;
            -- The timer and an operator's cancel have the same code, but the cancel comes earlier. A row is at fault if
            -- it was alone and used up its time, or was cut off alone before. No other part is tried: the timer fires
            -- once in a statement.
            late := cardinality(items) = 1 and code = '57014' and tidemark.time_left() <= interval '0'
                and (plan.suspects = 1
                     or clock_timestamp() - began >= current_setting('statement_timeout')::interval / 3);
            if coalesce(late, false) then
                message :=
                    format('it took longer than %s: %s', current_setting('statement_timeout')::interval, message);
            elsif tidemark.is_transient(code) or tidemark.source_is_misconfigured(code) then
                raise;
            end if;
            splits := splits + 1;
            if first = last then
                culprits := culprits || items[first];
                codes := codes || code;
                messages := messages || message;
            else
                stack := stack || array[(first + last) / 2 + 1, last, first, (first + last) / 2];
            end if;
        end;
    end loop;
    failed := '{}';
    if cardinality(culprits) > 0 then
        failed := tidemark.source_refused(plan, culprits, codes, messages);
    end if;
end
$$;
comment on function tidemark.source_split(tidemark.source_plan, text, text[]) is
    'Hands the rows ids of a page to the handler together. If that fails, it hands over their halves, down to the rows '
    'that fail alone. A single row that the statement_timeout ends has failed with 57014; for several rows the error '
    'is raised again. result sums the handler''s results; of groups it keeps the latest.';
grant execute on function tidemark.source_split(tidemark.source_plan, text, text[]) to tidemark_executor;
