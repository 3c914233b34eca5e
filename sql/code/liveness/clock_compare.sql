-- The difference between the server's clock and the daemon's changes by the delay of a beat, at most a few seconds,
-- unless the clock was stepped. Going back, it is a step for certain. Going forward, it may be one late beat, or a
-- daemon that stood still before it: so the next beat has to confirm it.
create or replace function tidemark.clock_compare(executor_id text, before jsonb, now_ jsonb)
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    tolerance constant numeric := 30;
    most constant numeric := 3e9; -- a century
    -- Any executor can write anything there, also for another.
    uptime constant numeric := case when jsonb_typeof(now_ -> 'uptime') = 'number'
                                         then (now_ ->> 'uptime')::numeric end;
    difference constant numeric := round(extract(epoch from clock_timestamp()) - uptime, 3);
    known constant numeric := case when before ->> 'instance' = now_ ->> 'instance'
                                        and jsonb_typeof(before -> 'clock') = 'number'
                                        then (before ->> 'clock')::numeric end;
    next constant numeric := case when jsonb_typeof(before -> 'clock_next') = 'number'
                                       then (before ->> 'clock_next')::numeric end;
begin
    if difference is null then
        return '{}';
    elsif known is null or abs(difference - known) < tolerance then
        return jsonb_build_object('clock', difference);
    elsif difference > known and coalesce(abs(difference - next) >= tolerance, true) then
        return jsonb_build_object('clock', known, 'clock_next', difference);
    end if;
    -- Other daemons see the same step.
    insert into tidemark.clock_step as s (at, step, seen_by)
    values (clock_timestamp(),
            make_interval(secs => greatest(least(round(difference - known), most), -most)::double precision),
            executor_id)
    on conflict ((true)) where settled_at is null do update
    set at = excluded.at, step = s.step + excluded.step
    where excluded.at not between s.at - interval '1 minute' and s.at + interval '1 minute';
    return jsonb_build_object('clock', difference);
end
$$;
comment on function tidemark.clock_compare(text, jsonb, jsonb) is
    'Part of tidemark.heartbeat_daemon: compares how far the server''s clock has gone since the last beat of the '
    'daemon with its uptime, which it measures by a clock that only goes forward; records a step of 30 s or more. '
    'Returns what the next beat is compared with.';
