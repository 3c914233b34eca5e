create or replace function tidemark.emit_findings()
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    types text;
    emits bigint;
    last timestamptz;
begin
    -- One statement and one snapshot: it deletes exactly the rows that the view has counted.
    with summed as (
        delete from tidemark.emit_unregistered
    )
    insert into tidemark.unregistered_type as k (domain, type, role, emits, first_at, last_at)
    select u.domain, u.type, u.role, u.emits, u.first_at, u.last_at from tidemark.unregistered_emits u
    on conflict (domain, type, role) do update
    set emits = excluded.emits, last_at = excluded.last_at where k.emits <> excluded.emits;

    delete from tidemark.unregistered_type k
    where k.last_at < clock_timestamp() - interval '1 day'
       or exists (select from tidemark.event_type t where t.domain = k.domain and t.type = k.type and t.enabled);

    select sum(k.emits), max(k.last_at),
           string_agg(format('%s/%s by %s (%s)', k.domain, k.type, k.role, k.emits),
                      ', ' order by k.last_at desc, k.domain, k.type, k.role) filter (where k.place <= 5)
           || case when count(*) > 5 then format(', and %s more', count(*) - 5) else '' end
    into emits, last, types
    from (select u.*, row_number() over (order by u.last_at desc, u.domain, u.type, u.role) as place
          from tidemark.unregistered_type u) k;
    if types is null then
        perform tidemark.finding_close('emit_unregistered', 'emit');
    -- Count the finding only once for new emits.
    elsif not exists (select from tidemark.finding f where f.kind = 'emit_unregistered' and f.subject = 'emit'
                      and f.closed_at is null and not f.derived and f.last_seen_at >= last
                      and f.detail like '%' || types) then
        perform tidemark.finding_open('emit_unregistered', 'emit', 'warning',
            format('%s stored nothing, since the type is not registered or not enabled: %s',
                   case emits when 1 then '1 emit' else emits || ' emits' end, types));
    end if;
end
$$;
comment on function tidemark.emit_findings() is
    'The part of tidemark.maintain for emits of types that are not registered or not enabled. Sums '
    'tidemark.emit_unregistered up by name (tidemark.unregistered_emits) and opens the finding emit_unregistered, '
    'which closes when every such type is enabled, or a day after its last emit.';
