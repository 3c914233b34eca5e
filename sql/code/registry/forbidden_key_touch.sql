-- An old snapshot cannot see a new row. It sees that the others were replaced.
create or replace function tidemark.forbidden_key_touch()
returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    update tidemark.forbidden_key f set key = f.key;
    return null;
end
$$;
comment on function tidemark.forbidden_key_touch() is
    'Trigger: a new forbidden key replaces the rows of all, for tidemark.registry_check.';

create or replace trigger forbidden_key_added
after insert on tidemark.forbidden_key
for each statement execute function tidemark.forbidden_key_touch();
comment on trigger forbidden_key_added on tidemark.forbidden_key is
    'Transactions with an older snapshot notice the new key.';
