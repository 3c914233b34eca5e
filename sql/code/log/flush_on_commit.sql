create or replace function tidemark.flush_on_commit()
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    -- What leaves after this transaction (a notification, a delivery) must not be taken back by a crash. Waiting
    -- for our own commit to reach the disk makes every commit before it durable too, so an event whose writer
    -- did not wait for the disk cannot be handled and then un-happen.
    if current_setting('synchronous_commit') in ('off', 'local') then
        perform set_config('synchronous_commit', 'on', true);
    end if;
end
$$;
comment on function tidemark.flush_on_commit() is
    'Makes this transaction''s commit wait for the disk, and for a synchronous standby, whatever the session''s '
    'default is.';
grant execute on function tidemark.flush_on_commit() to tidemark_executor;
