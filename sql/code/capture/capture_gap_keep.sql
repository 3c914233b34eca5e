create or replace function tidemark.capture_gap_keep(id bigint, unreadable text[])
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    gap tidemark.capture_gap;
begin
    update tidemark.capture_gap g
    set unreadable = capture_gap_keep.unreadable[1:1000],
        detail = format('rows cannot be emitted, since jsonb cannot hold them: %s%s; change them, or accept the gap',
                        array_to_string(capture_gap_keep.unreadable[1:10], ', '),
                        case when cardinality(capture_gap_keep.unreadable) > 10 then ' …' else '' end)
    where g.id = capture_gap_keep.id and g.resolved_at is null
    returning g.* into gap;
    if found then
        perform tidemark.finding_open('capture_gap', gap.name, 'high', gap.detail);
    end if;
end
$$;
comment on function tidemark.capture_gap_keep(bigint, text[]) is
    'Part of tidemark.capture_gap_emit: reduces an open gap to the rows that jsonb cannot hold, each named by its key '
    'and the SQLSTATE.';
grant execute on function tidemark.capture_gap_keep(bigint, text[]) to tidemark_admin;
