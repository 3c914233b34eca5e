create or replace function tidemark.capture_gap_open(gap tidemark.capture_gap)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into tidemark.capture_gap as g
        (relation, name, since, snapshot, keys, rows, others, counted, sampled, detail)
    values (gap.relation, gap.name, gap.since, gap.snapshot, coalesce(gap.keys[1:1000], '{}'), coalesce(gap.rows, 0),
            coalesce(gap.others, 0), coalesce(gap.counted, 0),
            coalesce(gap.sampled, false) or coalesce(cardinality(gap.keys), 0) > 1000, gap.detail)
    -- Keep the earliest since: rows are emitted from then on.
    on conflict (name) where resolved_at is null do update
    set keys = (g.keys || excluded.keys)[1:1000], rows = g.rows + excluded.rows, others = g.others + excluded.others,
        counted = g.counted + excluded.counted, detail = excluded.detail,
        sampled = g.sampled or excluded.sampled or cardinality(g.keys) + cardinality(excluded.keys) > 1000;
    perform tidemark.finding_open('capture_gap', gap.name, 'high', gap.detail);
end
$$;
comment on function tidemark.capture_gap_open(tidemark.capture_gap) is
    'Records a gap, with the finding capture_gap, or extends the open gap of the table.';
