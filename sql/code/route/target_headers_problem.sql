create or replace function tidemark.target_headers_problem(
    rules jsonb,
    headers jsonb,
    out problem text,
    out hint text)
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    header record;
    seen text[] := '{}';
    name text;
    plain text;
begin
    hint := 'headers: {"X-Shop": "1", "Authorization": {"secret": "NAME"}}; NAME is in the daemon''s configuration.';
    if jsonb_typeof(headers) <> 'object' then
        problem := 'option "headers" must be an object';
        return;
    end if;
    for header in select h.key, h.value from jsonb_each(headers) h order by h.key collate "C" loop
        name := lower(header.key collate "C");
        plain := case jsonb_typeof(header.value) when 'string' then header.value #>> '{}' end;
        -- A text that is no name may be a secret: it is not repeated.
        problem := case
            when header.key collate "C" !~ (rules ->> 'header_name')
                then 'option "headers" has a name that is no header name'
            when name ~ any (array(select jsonb_array_elements_text(rules -> 'reserved_header')))
                then format('header %s is reserved', header.key)
            when name = any (seen) then format('header %s is there twice', header.key)
            when jsonb_typeof(header.value) = 'object' and header.value ? 'secret'
                and (select count(*) from jsonb_object_keys(header.value)) = 1
                and jsonb_typeof(header.value -> 'secret') = 'string'
                and header.value ->> 'secret' collate "C" ~ (rules ->> 'name')
                and header.value ->> 'secret' collate "C" !~ (rules ->> 'key_prefix') then null
            when plain is null then format('header %s must be a text or {"secret": "NAME"}', header.key)
            when name ~ any (array(select jsonb_array_elements_text(rules -> 'secret_name')))
                or lower(plain collate "C") ~ (rules ->> 'secret_value')
                then format('header %s holds a secret in plain text', header.key)
            when plain collate "C" !~ (rules ->> 'header_value')
                then format('header %s has a control character in its value', header.key)
        end;
        if problem is not null then
            if problem ~ 'plain text$' then
                hint := format('Readers and the audit see options. Write {"headers": {"%s": {"secret": "NAME"}}}; '
                    'NAME is in the daemon''s configuration, secrets or oauth2.', header.key);
            end if;
            return;
        end if;
        seen := seen || name;
    end loop;
    hint := null;
end
$$;
comment on function tidemark.target_headers_problem(jsonb, jsonb) is
    'Part of tidemark.target_problem: what is wrong with the option headers. Null: nothing. It does not repeat values.';
grant execute on function tidemark.target_headers_problem(jsonb, jsonb)
    to tidemark_reader, tidemark_executor, tidemark_admin;
