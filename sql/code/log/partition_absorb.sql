create or replace function tidemark.partition_absorb(first_seq bigint, end_seq bigint)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    parent text;
    ranged text;
    rest text;
    number text;
begin
    foreach parent in array array['outbox', 'decision', 'attempt'] loop
        ranged := parent || '_p' || first_seq;
        rest := parent || '_rest';
        number := case parent when 'decision' then 'last_seq' else 'seq' end;
        execute format('alter table tidemark.%I detach partition tidemark.%I', parent, rest);
        execute format('alter table tidemark.%I rename to %I', rest, ranged);
        execute format('create table tidemark.%I partition of tidemark.%I default', rest, parent);
        -- The rest of the evidence also has replays of events whose own partition is gone. They are few, and stay
        -- there; the log has none.
        execute format('with stay as (delete from tidemark.%1$I where %2$I < %3$s returning *) insert into '
                       'tidemark.%4$I overriding system value select * from stay',
                       ranged, number, first_seq, rest);
        execute format('alter table tidemark.%I attach partition tidemark.%I for values from (%s) to (%s)',
                       parent, ranged, first_seq, end_seq);
    end loop;
end
$$;
comment on function tidemark.partition_absorb(bigint, bigint) is
    'Turns the partitions that took the rest into those for the numbers from first_seq to before end_seq, and makes '
    'new, empty ones for the rest. Blocks writers for a moment.';
