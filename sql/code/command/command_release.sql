create or replace function tidemark.command_release(service text, idempotency_key text)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    done text;
begin
    delete from tidemark.command_parked p
    where p.service = command_release.service and p.idempotency_key = command_release.idempotency_key
    returning p.key into done;
    update tidemark.command_parked p set next_attempt_at = clock_timestamp()
    where p.service = command_release.service and p.key = done and p.next_attempt_at = 'infinity'
      and p.position = (select min(q.position) from tidemark.command_parked q
                        where q.service = command_release.service and q.key = done);
end
$$;
comment on function tidemark.command_release(text, text) is
    'A parked command is done: the next one of its ordering key is due.';
