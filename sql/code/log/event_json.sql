create or replace function tidemark.event_json(event tidemark.outbox)
returns jsonb
language sql stable parallel safe
as $$
    select pg_catalog.to_jsonb(event)
$$;
comment on function tidemark.event_json(tidemark.outbox) is
    'An event as SQL targets receive it and as dead letters keep it: the columns of the log by name.';
grant execute on function tidemark.event_json(tidemark.outbox) to tidemark_executor, tidemark_admin;
