create or replace function tidemark.shell_word(word text)
returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    select case when word ~ '^[A-Za-z0-9_./:@%+=,-]+$' then word
                else '''' || replace(word, '''', E'''\\''''') || '''' end
$$;
comment on function tidemark.shell_word(text) is 'The text as one word of a POSIX shell''s command.';
grant execute on function tidemark.shell_word(text) to tidemark_reader, tidemark_executor;
