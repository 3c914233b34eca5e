create or replace function tidemark.command_behind(service text, key text)
returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_sort = off
set jit = off
as $$
begin
    -- A session that releases commands may be about to delete the last one of this key. It would not see what this
    -- transaction parks, which would then wait for ever. So one of the two comes after the other: see command_release.
    lock table tidemark.command_turn in row share mode;
    -- Only the index of keys has this order, which EXISTS would drop.
    return (select true from tidemark.command_parked p
            where p.service = command_behind.service and p.key = command_behind.key
            order by p.position limit 1) is not null;
end
$$;
comment on function tidemark.command_behind(text, text) is
    'Whether commands of this ordering key are parked. Until this transaction ends, no other releases any.';
