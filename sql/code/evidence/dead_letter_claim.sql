create or replace function tidemark.dead_letter_claim(id bigint)
returns tidemark.dead_letter
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    letter tidemark.dead_letter;
begin
    select l.* into letter from tidemark.dead_letter l where l.id = dead_letter_claim.id for update;
    if not found then
        raise exception using errcode = 'TM004', message = format('there is no dead letter %s', dead_letter_claim.id),
            hint = 'Open ones: select * from tidemark.dead_letter where resolved_at is null;';
    end if;
    if letter.resolved_at is not null then
        raise exception using errcode = 'TM013',
            message = format('dead letter %s is resolved already: %s at %s by %s', letter.id, letter.resolution,
                             letter.resolved_at, letter.resolved_by),
            hint = 'It stays on record: select * from tidemark.route_attempt.';
    end if;
    if exists (select from tidemark.pending p where p.dead_letter_id = letter.id)
        or exists (select from tidemark.pending_row p where p.dead_letter_id = letter.id) then
        raise exception using errcode = 'TM013',
            message = format('dead letter %s is being replayed: its delivery is pending', letter.id),
            hint = 'Wait for the outcome of that attempt.';
    end if;
    return letter;
end
$$;
comment on function tidemark.dead_letter_claim(bigint) is
    'Locks an open dead letter for this transaction. Raises TM004 (unknown) and TM013 (resolved, or a replay is '
    'pending).';
grant execute on function tidemark.dead_letter_claim(bigint) to tidemark_executor;
