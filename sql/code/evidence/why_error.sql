create or replace function tidemark.why_error(code text, message text)
returns text
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
    select code || coalesce(
        ', ' || rtrim(tidemark.error_shown(code, nullif(message, ''), tidemark.role_taken()), E'. \n'), '')
$$;
comment on function tidemark.why_error(text, text) is
    'The error of a delivery in a sentence, as far as the caller''s role may see it (tidemark.error_shown).';
