create or replace function tidemark.silence_add()
returns trigger
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into tidemark.silence (executor_id) values (new.executor_id) on conflict do nothing;
    return null;
end
$$;
comment on function tidemark.silence_add() is
    'Trigger: gives a new executor the row of tidemark.silence that tidemark.stale_check locks.';

create or replace trigger heartbeat_silence
after insert on tidemark.heartbeat
for each row execute function tidemark.silence_add();
comment on trigger heartbeat_silence on tidemark.heartbeat is
    'Gives a new executor the row of tidemark.silence that tidemark.stale_check locks.';
