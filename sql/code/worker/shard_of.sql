-- Inlined by its callers, so it has no search_path.
create or replace function tidemark.shard_of(key text, seq bigint, shards integer)
returns integer
language sql immutable parallel safe
as $$
    select ((coalesce(pg_catalog.hashtextextended(shard_of.key, 0), shard_of.seq) & 9223372036854775807)
            % shard_of.shards)::integer
$$;
comment on function tidemark.shard_of(text, bigint, integer) is
    'The shard, from 0, that an event with this key and number belongs to: events of one key to one shard, events '
    'without a key by their number.';
grant execute on function tidemark.shard_of(text, bigint, integer) to tidemark_reader, tidemark_executor;
