create or replace function tidemark.signed()
returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    new := jsonb_populate_record(new, jsonb_build_object(tg_argv[0], tidemark.login()));
    return new;
end
$$;
comment on function tidemark.signed() is
    'Trigger: sets the column that its argument names to the role that logged in (tidemark.login), whatever the '
    'statement gave. The statement fails where the login cannot be told.';

create or replace trigger audit_signed
before insert on tidemark.audit
for each row execute function tidemark.signed('actor');
comment on trigger audit_signed on tidemark.audit is 'Each row names the role that made it, and no other.';

create or replace trigger pack_signed
before insert or update on tidemark.pack
for each row execute function tidemark.signed('installed_by');
comment on trigger pack_signed on tidemark.pack is 'Each row names the role that made it, and no other.';
