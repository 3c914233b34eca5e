-- Inlined by its callers, so it has no search_path.
create or replace function tidemark.route_fits(
    of_domain text, of_type text, of_stream text, domain text, type text, stream text)
returns boolean
language sql immutable parallel safe
as $$
    select (of_domain = '*' or of_domain = domain)
       and tidemark.pattern_matches(of_type, type)
       and (of_stream is null or of_stream = stream)
$$;
comment on function tidemark.route_fits(text, text, text, text, text, text) is
    'True where a route of this domain, type and stream (the first three) is for events of that domain, type and '
    'stream.';
grant execute on function tidemark.route_fits(text, text, text, text, text, text)
    to tidemark_reader, tidemark_executor;
