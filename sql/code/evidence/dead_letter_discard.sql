-- public
create or replace function tidemark.dead_letter_discard(id bigint, reason text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    letter constant tidemark.dead_letter := tidemark.dead_letter_claim(dead_letter_discard.id);
begin
    if coalesce(btrim(dead_letter_discard.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'discarding a dead letter needs a reason';
    end if;
    update tidemark.dead_letter l
    set resolved_at = clock_timestamp(), resolution = 'discarded', resolved_by = tidemark.login(),
        resolution_reason = dead_letter_discard.reason
    where l.id = letter.id;
    insert into tidemark.audit (action, object, reason)
    values ('dead_letter_discard', 'dead_letter ' || letter.id, dead_letter_discard.reason);
end
$$;
comment on function tidemark.dead_letter_discard(bigint, text) is
    'Resolves a dead letter that will never be delivered. The letter stays on record, with the role and the reason. '
    'Raises TM004, TM005 (no reason), TM013.';
grant execute on function tidemark.dead_letter_discard(bigint, text) to tidemark_admin;
