create or replace function tidemark.finding_close(kind text, subject text)
returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    update tidemark.finding f set closed_at = clock_timestamp()
    where f.kind = finding_close.kind and f.subject = finding_close.subject and f.closed_at is null;
    return found;
end
$$;
comment on function tidemark.finding_close(text, text) is
    'Closes the open finding of the kind on the subject. False: no such finding was open.';
