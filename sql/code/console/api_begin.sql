create or replace function tidemark.api_begin(person text, key text, request bytea)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    known tidemark.api_answer;
begin
    if length(api_begin.key) not between 1 and 255 then
        raise exception using errcode = 'TM005',
            message = format('the Idempotency-Key has %s characters', length(api_begin.key)),
            hint = 'Give it 1 to 255 characters, such as a UUID.';
    end if;
    insert into tidemark.api_answer (person, key, request)
    values (api_begin.person, api_begin.key, api_begin.request)
    on conflict do nothing;
    if found then
        return null;
    end if;
    select * into known from tidemark.api_answer a where a.person = api_begin.person and a.key = api_begin.key;
    if known.request is distinct from api_begin.request then
        raise exception using errcode = 'TM005',
            message = 'the Idempotency-Key was used for another request',
            hint = 'Use a new key for each request, and the same one only to repeat it.';
    end if;
    if known.answer = '"erased"' then
        raise exception using errcode = 'TM013',
            message = 'the request with this Idempotency-Key was done, and its answer is erased',
            hint = 'It is not done again. The audit has what it changed.';
    end if;
    return known.answer;
end
$$;
comment on function tidemark.api_begin(text, text, bytea) is
    'Begins a write of the API in its transaction. Returns what the same request was answered before, or null: it is '
    'to be done, and its answer to be kept by tidemark.api_end. A request under way with the same key is waited for. '
    'Raises TM005 where the key was used for another request, TM013 where the answer is erased '
    '(tidemark.api_answers_erase).';
grant execute on function tidemark.api_begin(text, text, bytea) to tidemark_admin;
