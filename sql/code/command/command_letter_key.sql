create or replace function tidemark.command_letter_key(record bigint, replays integer)
returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    select 'tm:commands:' || record || case when replays > 0 then '/' || replays else '' end
$$;
comment on function tidemark.command_letter_key(bigint, integer) is
    'The idempotency_key of the dead letter of a record of tidemark.command_record, which has failed after so many '
    'replays.';

grant execute on function tidemark.command_letter_key(bigint, integer) to tidemark_executor;
