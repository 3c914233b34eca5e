create or replace function tidemark.maintain_note(reason text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if coalesce(btrim(maintain_note.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'upkeep on behalf of a person needs a reason';
    end if;
    insert into tidemark.audit (action, object, reason) values ('maintain', 'installation', maintain_note.reason);
end
$$;
comment on function tidemark.maintain_note(text) is
    'Records in tidemark.audit that a person has tidemark.maintain run, and why. Raises TM005.';
grant execute on function tidemark.maintain_note(text) to tidemark_admin;
