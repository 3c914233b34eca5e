-- Not a security definer: whoever reads the table may as a rule look at its sequence.
create or replace function tidemark.source_restarted(plan tidemark.source_plan, page tidemark.source_page)
returns text
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    s constant tidemark.source := plan.source;
    sequence regclass;
    last bigint;
begin
    if plan.step <> 'forward' or s.safety <> 'sequence' or page.examined > 0 then
        return null;
    end if;
    sequence := tidemark.source_sequence(plan.relation, s.id_column);
    if sequence is null or not has_sequence_privilege(sequence, 'select, usage') then
        return null;
    end if;
    last := coalesce(pg_sequence_last_value(sequence), (select q.seqstart - 1 from pg_sequence q where q.seqrelid = sequence));
    return case when last < (plan.cursor).watermark_id::bigint then format(
        'sequence %s is at %s, behind the watermark %s: it was set back, or rows came with numbers of their own. What it hands out '
        'next would be passed over. Set it forward, or rewind to where its numbers go on', sequence, last, (plan.cursor).watermark_id) end;
end
$$;
comment on function tidemark.source_restarted(tidemark.source_plan, tidemark.source_page) is 'Whether the sequence of a source is behind the watermark, so that rows to come would be passed over; null: it is not, or may not be looked at.';
revoke all on function tidemark.source_restarted(tidemark.source_plan, tidemark.source_page) from public;
grant execute on function tidemark.source_restarted(tidemark.source_plan, tidemark.source_page) to tidemark_executor;
