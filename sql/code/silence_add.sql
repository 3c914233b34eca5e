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
comment on function tidemark.silence_add() is 'Gives a new executor the row of tidemark.silence that tidemark.stale_check locks.';
revoke all on function tidemark.silence_add() from public;
