-- Inlined by its callers, so it has no search_path.
create or replace function tidemark.shut_domains()
returns table (domain text)
language sql stable
as $$
    select pg_catalog.substr(s.key, 8, pg_catalog.length(s.key) - 15) from tidemark.setting s
    where s.key like 'domain.%.enabled' and s.value <> 'true'
$$;
comment on function tidemark.shut_domains() is 'tidemark.closed_domains, to be read in a larger statement.';
grant execute on function tidemark.shut_domains() to tidemark_reader, tidemark_executor;
