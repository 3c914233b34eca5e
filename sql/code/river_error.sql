-- A job in a queue whose name River does not take would lie there for ever: no client can work that queue.
create or replace function tidemark.river_error(target_ref text, options jsonb)
returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select case when length(target_ref) not between 1 and 127
        then format('job kind "%s" must have 1 to 127 characters', left(target_ref, 200))
    else (
        select case when k.key is null
            then format('there is no option "%s" for river: only max_attempts, priority, queue and schema', left(o.key, 100))
            else format('option "%s" is %s, must be %s', o.key, left(o.value::text, 100), k.must) end
        from jsonb_each(options) o
        left join (values
            ('max_attempts', 'a whole number from 1 to 32767', 'strict $ >= 1 && $ <= 32767 && $ == $.floor()'::jsonpath),
            ('priority', 'a whole number from 1 to 4', 'strict $ >= 1 && $ <= 4 && $ == $.floor()'),
            ('queue', 'small letters and digits, single "_", "-" or "|" between them, at most 64 characters',
             'strict $ like_regex "^[a-z0-9]+([_|-][a-z0-9]+)*$" && $ like_regex "^.{1,64}$"'),
            -- Before ".river_leadership" it must still be the name of a channel.
            ('schema', 'a text of 1 to 46 characters', 'strict $ like_regex "^.{1,46}$"')
        ) k (key, must, rule) on k.key = o.key
        where jsonb_path_match(o.value, k.rule, silent => true) is not true
        order by o.key limit 1) end
$$;
comment on function tidemark.river_error(text, jsonb) is 'What is wrong with the job kind or the options of a route to river; null: nothing. Options, all of which may be missing: max_attempts (1 to 32767, default 25), priority (1, the first, to 4, default 1), queue (default "default"), schema (River''s, default "public").';
revoke all on function tidemark.river_error(text, jsonb) from public;
grant execute on function tidemark.river_error(text, jsonb) to tidemark_reader, tidemark_executor;
