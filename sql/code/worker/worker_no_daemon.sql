create or replace function tidemark.worker_no_daemon()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception using errcode = 'TM005', message = format('a worker cannot be named "%s"', new.worker),
        hint = 'Heartbeats of daemons begin with this name. Choose another one.';
end
$$;
comment on function tidemark.worker_no_daemon() is
    'Trigger: refuses the name daemon, whose cursors would be taken for daemons (daemon/NAME). Raises TM005.';

create or replace trigger worker_is_no_daemon
before insert or update of worker on tidemark.worker
for each row when (new.worker = 'daemon') execute function tidemark.worker_no_daemon();
comment on trigger worker_is_no_daemon on tidemark.worker is 'A worker is not taken for a daemon.';
