-- public
create or replace function tidemark.finding_ack(id bigint, note text)
returns setof tidemark.finding
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    before jsonb;
    acked tidemark.finding;
begin
    if coalesce(note, '') !~ '[^[:space:]]' then
        raise exception using errcode = 'TM005', message = format('finding %s: a note is missing', id),
            hint = 'Say who handles it, or why it may stay open: other operators read the note.';
    end if;
    select to_jsonb(f) into before from tidemark.finding f where f.id = finding_ack.id for update;
    if not found then
        raise exception using errcode = 'TM004', message = format('there is no finding %s', id),
            hint = 'Findings: select id, kind, subject from tidemark.finding where closed_at is null;';
    end if;
    if before ->> 'closed_at' is not null then
        raise exception using errcode = 'TM005',
            message = format('finding %s is closed since %s', id, before ->> 'closed_at'),
            hint = 'Only an open finding is acknowledged.';
    end if;
    update tidemark.finding f set acked_at = clock_timestamp(), acked_by = tidemark.login(), ack_note = finding_ack.note
    where f.id = finding_ack.id returning f.* into acked;
    insert into tidemark.audit (action, object, reason, before, after)
    values ('finding_ack', 'finding ' || acked.id, finding_ack.note, before, to_jsonb(acked));
    return next acked;
end
$$;
comment on function tidemark.finding_ack(bigint, text) is
    'Records that an operator knows of an open finding, which stays open until its cause is over. A second call '
    'replaces the note. Returns the row; tidemark.audit records it. Raises TM004 (no such finding), TM005 (the finding '
    'is closed, or the note is empty).';
grant execute on function tidemark.finding_ack(bigint, text) to tidemark_admin;
