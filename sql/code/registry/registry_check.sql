-- A snapshot of before a change shows the row of before. Its xmax is the transaction that replaced it: one that has
-- committed and that the snapshot does not see has changed the rule since. A lock of the row would show it too, and
-- hold up the operator.
create or replace function tidemark.registry_check(domain text, type text)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
begin
    if exists (
        select from (
            select t.xmax as id from tidemark.event_type t
            where t.domain = registry_check.domain and t.type = registry_check.type
            union all
            select e.xmax from tidemark.domain_emitter e where e.domain = registry_check.domain) r
        -- A transaction of now is less than half of all numbers away.
        cross join lateral tidemark.full_xid(r.id, (pg_current_xact_id()::text::bigint + 2147483647)::text::xid8) x (id)
        where r.id <> '0' and not pg_visible_in_snapshot(x.id, pg_current_snapshot())
          and pg_xact_status(x.id) = 'committed')
    then
        raise exception using errcode = 'serialization_failure',
            message = format('domain %s or its event type %s was changed after the snapshot of this transaction was '
                             'taken', domain, type),
            hint = 'Roll back and try again: an emit uses the current grants.';
    end if;
end
$$;
comment on function tidemark.registry_check(text, text) is
    'Raises 40001 under REPEATABLE READ and SERIALIZABLE where the event type, or a grant of the domain, was changed '
    'after the snapshot: the emit would go by rules that an operator has taken back.';
