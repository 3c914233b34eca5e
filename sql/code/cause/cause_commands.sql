create or replace function tidemark.cause_commands(templates text[], subject text, shell boolean)
returns text[]
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(array_agg(
        replace(replace(replace(replace(x.line, '{name}', cause_commands.subject), '{subject}', w.whole),
                        '{worker}', w.worker), '{source}', w.source) order by x.n), '{}')
    from unnest(templates) with ordinality x (line, n)
    cross join lateral (values (cause_commands.subject, split_part(cause_commands.subject, '/', 1),
                                split_part(cause_commands.subject, '/', 2))) p (whole, worker, source)
    cross join lateral (
        select case when shell then tidemark.shell_word(p.whole) else quote_literal(p.whole) end as whole,
               case when shell then tidemark.shell_word(p.worker) else quote_literal(p.worker) end as worker,
               case when shell then tidemark.shell_word(p.source) else quote_literal(p.source) end as source) w
$$;
comment on function tidemark.cause_commands(text[], text, boolean) is
    'Commands of tidemark.cause_kind for a subject, quoted for a shell or for SQL: {subject}, of worker/source/shard '
    'also {worker} and {source}. {name} is the subject as it is, for a name that is quoted already.';
grant execute on function tidemark.cause_commands(text[], text, boolean) to tidemark_reader, tidemark_executor;
