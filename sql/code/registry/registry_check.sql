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
            select e.xmax from tidemark.domain_emitter e where e.domain = registry_check.domain
            union all
            select f.xmax from tidemark.forbidden_key f
            where exists (select from tidemark.event_type t
                          where t.domain = registry_check.domain and t.type = registry_check.type
                            and t.metadata_only)) r
        where tidemark.replaced_since_snapshot(r.id))
    then
        raise exception using errcode = 'serialization_failure',
            message = format('domain %s, its event type %s or a forbidden key was changed after the snapshot of this '
                             'transaction was taken', domain, type),
            hint = 'Roll back and try again: an emit follows the current rules.';
    end if;
end
$$;
comment on function tidemark.registry_check(text, text) is
    'Raises 40001 under REPEATABLE READ and SERIALIZABLE where the event type, a grant of the domain or, in a '
    'metadata-only domain, a forbidden key was changed after the snapshot: the emit would go by rules that an operator '
    'has taken back.';
