create or replace function tidemark.api_end(person text, key text, answer jsonb)
returns void
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
    update tidemark.api_answer a set answer = api_end.answer
    where a.person = api_end.person and a.key = api_end.key
$$;
comment on function tidemark.api_end(text, text, jsonb) is
    'Keeps the answer of a write of the API, in the transaction in which tidemark.api_begin began it. A test delivery '
    'has a second answer, which takes the place of the first.';
grant execute on function tidemark.api_end(text, text, jsonb) to tidemark_admin;
