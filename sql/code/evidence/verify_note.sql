create or replace function tidemark.verify_note(reason text, result jsonb default null)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if coalesce(btrim(verify_note.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'a verification in the background needs a reason';
    end if;
    insert into tidemark.audit (action, object, reason, after)
    values ('verify', 'installation', verify_note.reason, verify_note.result);
end
$$;
comment on function tidemark.verify_note(text, jsonb) is
    'Records in tidemark.audit that tidemark.verify begins on behalf of a person who does not wait for it, or what '
    'came of it (result). Raises TM005.';
grant execute on function tidemark.verify_note(text, jsonb) to tidemark_admin;
