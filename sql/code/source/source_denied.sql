create or replace function tidemark.source_denied(relation regclass)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    code text;
begin
    if row_security_active(source_denied.relation) then
        return format('row security of %s hides rows from %s', source_denied.relation, current_user);
    end if;
    code := tidemark.foreign_code(source_denied.relation);
    return case when code is not null
                     then format('reading %s would run code with the rights of %s: %s. Have the functions owned by a '
                                 'superuser or by %2$s, or drop what calls them',
                  source_denied.relation, current_user, code) end;
end
$$;
comment on function tidemark.source_denied(regclass) is
    'Why the caller must not read a table: policies hide rows, or the owner''s code would run as the caller '
    '(tidemark.foreign_code). Null: the caller may read it.';
grant execute on function tidemark.source_denied(regclass) to tidemark_reader, tidemark_executor;
