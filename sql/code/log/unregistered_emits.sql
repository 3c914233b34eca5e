-- public
-- The sums of maintain, and the emits since; names past the limit are under "*".
create or replace view tidemark.unregistered_emits as
with new as (
    select u.domain, u.type, u.role, sum(u.emits) as emits, min(u.at) as first_at, max(u.at) as last_at,
           exists (select from tidemark.unregistered_type k
                   where k.domain = u.domain and k.type = u.type and k.role = u.role) as known
    from tidemark.emit_unregistered u group by u.domain, u.type, u.role
), placed as (
    select n.*, n.known or (select count(*) from tidemark.unregistered_type)
                           + row_number() over (partition by n.known order by n.first_at) < 1000 as named
    from new n
), told as (
    select k.domain, k.type, k.role, k.emits, k.first_at, k.last_at from tidemark.unregistered_type k
    union all
    select case when p.named then p.domain else '*' end, case when p.named then p.type else '*' end,
           case when p.named then p.role else '*' end, p.emits, p.first_at, p.last_at
    from placed p
)
select t.domain, t.type, t.role, sum(t.emits)::bigint as emits, min(t.first_at) as first_at, max(t.last_at) as last_at
from told t
where not exists (select from tidemark.event_type e where e.domain = t.domain and e.type = t.type and e.enabled)
group by t.domain, t.type, t.role
having max(t.last_at) >= clock_timestamp() - interval '1 day';
comment on view tidemark.unregistered_emits is
    'Types that were emitted within a day and are not registered, or not enabled, by role: tidemark.unregistered_type '
    'and the emits that tidemark.maintain has not summed up yet. At most 1,000 rows.';
grant select on tidemark.unregistered_emits to tidemark_reader, tidemark_executor;
