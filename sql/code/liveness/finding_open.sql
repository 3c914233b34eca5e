create or replace function tidemark.finding_open(
    kind text, subject text, severity tidemark.severity, detail text, message text default null)
returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    opened bigint;
begin
    insert into tidemark.finding as f (kind, subject, severity, detail)
    values (finding_open.kind, finding_open.subject, finding_open.severity, finding_open.detail)
    on conflict (kind, subject) where closed_at is null do update
    set count = f.count + 1, last_seen_at = clock_timestamp(), severity = excluded.severity, detail = excluded.detail,
        derived = false
    returning f.id into opened;
    if finding_open.message is not null then
        insert into tidemark.finding_message as m (finding, message) values (opened, finding_open.message)
        on conflict (finding) do update set message = excluded.message where m.message <> excluded.message;
    else
        delete from tidemark.finding_message m where m.finding = opened;
    end if;
    return opened;
end
$$;
comment on function tidemark.finding_open(text, text, tidemark.severity, text, text) is
    'Opens a finding, or counts it again where it is already open. Readers see detail; only roles that may read '
    'payloads see message, which may quote a payload. Returns the number of the finding.';
