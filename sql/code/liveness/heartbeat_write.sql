-- public
create or replace function tidemark.heartbeat_write(
    executor_id text, status text default 'ok', payload jsonb default '{}', current_job_id text default null)
returns timestamptz
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    at timestamptz;
begin
    if status is null or length(status) not between 1 and 200 then
        raise exception using errcode = 'TM005',
            message = format('executor %s: status has %s characters, and must have 1 to 200', executor_id,
                             coalesce(length(status), 0)),
            hint = 'One short text, such as ok, running or failed:1.';
    end if;
    if current_job_id !~ '^[^[:space:][:cntrl:]]{1,200}$' or current_job_id = '' then
        raise exception using errcode = 'TM005',
            message = format('executor %s: current_job_id is %s, and must be 1 to 200 characters without white space',
                             executor_id, quote_literal(left(current_job_id, 300))),
            hint = 'Give the id of the job that the executor works on, never its content; null if it works on none.';
    end if;
    perform tidemark.heartbeat_payload_check(executor_id, payload);
    if tidemark.is_cursor(executor_id) then
        raise exception using errcode = 'TM005',
            message = format('executor %s is the cursor of a worker, whose beats are its passes', executor_id),
            hint = 'Run the worker: tidemark worker run NAME, or the daemon.';
    end if;
    at := tidemark.executor_beat(array[executor_id], status, null, payload, current_job_id);
    if at is null then
        raise exception using errcode = 'TM004', message = format('there is no executor "%s"', executor_id),
            hint = format('An administrator registers it: select tidemark.heartbeat_register(%s);',
                          quote_nullable(executor_id));
    end if;
    return at;
end
$$;
comment on function tidemark.heartbeat_write(text, text, jsonb, text) is
    'A beat of a registered executor, in a transaction of its own: status is the executor''s report on itself (1 to '
    '200 characters, default ok), payload holds small facts, current_job_id is the job that it works on (1 to 200 '
    'characters; null, the default: none). Call it on every tick, with or without work. Returns the time of the beat, '
    'by the database''s clock. Raises TM002 (payload is not an object), TM003 (forbidden key), TM004 (not registered), '
    'TM005. Source: S4 fn_queue_heartbeat_write.';
grant execute on function tidemark.heartbeat_write(text, text, jsonb, text) to tidemark_executor;
