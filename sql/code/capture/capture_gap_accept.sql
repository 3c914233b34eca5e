-- public
create or replace function tidemark.capture_gap_accept(id bigint, reason text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    gap constant tidemark.capture_gap := (
        select g from tidemark.capture_gap g where g.id = capture_gap_accept.id and g.resolved_at is null);
begin
    if gap.id is null then
        raise exception using errcode = 'TM004', message = format('there is no open gap %s', id),
            hint = 'See: select * from tidemark.capture_gap where resolved_at is null;';
    elsif coalesce(btrim(reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'accepting a gap needs a reason',
            hint = 'Its changes will never be events. Give the reason: tidemark.audit records it.';
    end if;
    perform tidemark.capture_gap_resolve(gap, 'accepted', reason);
end
$$;
comment on function tidemark.capture_gap_accept(bigint, text) is
    'Accepts permanently that the changes of a gap have no events. tidemark.audit records it. Raises TM004 for an '
    'unknown or closed gap, TM005 without a reason.';
grant execute on function tidemark.capture_gap_accept(bigint, text) to tidemark_admin;
