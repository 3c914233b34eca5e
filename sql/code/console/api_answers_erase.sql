create or replace function tidemark.api_answers_erase()
returns void
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
    update tidemark.api_answer a set answer = '"erased"'
    where a.answer @? '$.**.detail ? (@ != null && @ != "")' or a.answer @? '$.**.error_detail ? (@ != null)'
$$;
comment on function tidemark.api_answers_erase() is
    'Erases the answers in tidemark.api_answer that have texts of errors, which may quote payloads that are erased in '
    'this transaction. Their requests are not done again: tidemark.api_begin refuses them.';
