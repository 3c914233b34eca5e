create or replace function tidemark.flush_on_commit()
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    -- A crash must not undo this transaction after a notification or a delivery has left. Waiting for this commit to
    -- reach the disk makes every earlier commit durable too, so no crash can undo an event that was already handled,
    -- even if its writer did not wait for the disk.
    if current_setting('synchronous_commit') in ('off', 'local') then
        perform set_config('synchronous_commit', 'on', true);
    end if;
end
$$;
comment on function tidemark.flush_on_commit() is
    'Makes the commit of this transaction wait for the disk, and for a synchronous standby, whatever the session''s '
    'default.';
grant execute on function tidemark.flush_on_commit() to tidemark_executor;
