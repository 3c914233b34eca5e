-- Not granted: only functions that look at a lease call it.
create or replace function tidemark.lease_lost(worker text, epoch bigint)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception using errcode = 'TM011',
        message = format('worker %s: epoch %s is over, another instance has taken the cursor, or the server is '
                         'another one since', lease_lost.worker, lease_lost.epoch),
        hint = 'Nothing was written. The next owner of the lease reads these events.';
end
$$;
comment on function tidemark.lease_lost(text, bigint) is 'Raises TM011 for an owner whose lease is over.';
