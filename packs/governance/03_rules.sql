-- Rules by which candidates are judged.

create or replace function governance.input_rule(candidate governance.candidate)
returns text
language sql immutable
as $$
    select case when pg_catalog.btrim(candidate.collection_name) = '' or pg_catalog.btrim(candidate.entity_code) = ''
                     then 'incomplete' else 'accepted' end
$$;
comment on function governance.input_rule(governance.candidate) is
    'Input quality, unless the ruleset names another rule: incomplete (a part of the name is blank) or accepted.';

create or replace function governance.verdict_rule(candidate governance.candidate, input_quality_state text)
returns text
language sql immutable
as $$
    select case input_quality_state when 'accepted' then 'propose' else 'hold' end
$$;
comment on function governance.verdict_rule(governance.candidate, text) is
    'Verdict, unless the ruleset names another rule: propose (the input was accepted) or hold.';

-- Functions that the workers' functions share

create or replace function governance.current_ruleset()
returns governance.ruleset
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select r from governance.ruleset r where r.is_current
$$;
comment on function governance.current_ruleset() is 'The ruleset that the workers use.';

create or replace function governance.rule_name(rule text)
returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    name constant text[] := parse_ident(rule);
begin
    if cardinality(name) <> 2 then
        raise exception using errcode = '42883', message = format('the rule %s is not named as schema.function', rule);
    end if;
    return format('%I.%I', name[1], name[2]);
end
$$;
comment on function governance.rule_name(text) is
    'The name of a rule, quoted for a statement. Raises 42883 where the name is not schema.function.';

create or replace function governance.ruleset_set(
    ruleset_version text, changes jsonb default '{}', reason text default null)
returns setof governance.ruleset
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    row_ governance.ruleset;
    wrong text;
begin
    perform set_config('tidemark.reason', coalesce(ruleset_set.reason, ''), true);
    perform tidemark.changes_check('ruleset', ruleset_set.changes, 'governance.ruleset',
                                   array['ruleset_version', 'created_at', 'created_by']);
    insert into governance.ruleset (ruleset_version) values (ruleset_set.ruleset_version) on conflict do nothing;
    row_ := (select jsonb_populate_record(r, changes) from governance.ruleset r
             where r.ruleset_version = ruleset_set.ruleset_version for update);
    if not row_.is_current and exists (select from governance.ruleset r
                                       where r.ruleset_version = ruleset_set.ruleset_version and r.is_current) then
        raise exception using errcode = 'TM005', message = format('ruleset %s is current', ruleset_set.ruleset_version),
            hint = 'Make another one current instead.';
    end if;
    select f.signature into wrong from (values
        (governance.rule_name(row_.input_rule) || '(governance.candidate)'),
        (governance.rule_name(row_.verdict_rule) || '(governance.candidate, text)')) f (signature)
    where not exists (select from pg_proc p
                      where p.oid = to_regprocedure(f.signature) and p.prorettype = 'text'::regtype);
    if found then
        raise exception using errcode = 'TM005', message = format('there is no function %s that returns text', wrong),
            hint = 'A rule is named as schema.function.';
    end if;
    if row_.is_current then
        update governance.ruleset r set is_current = false
        where r.is_current and r.ruleset_version <> ruleset_set.ruleset_version;
    end if;
    return query
    update governance.ruleset r
    set is_current = row_.is_current, stale_after = row_.stale_after, input_rule = row_.input_rule,
        verdict_rule = row_.verdict_rule, description = row_.description
    where r.ruleset_version = ruleset_set.ruleset_version returning r.*;
end
$$;
comment on function governance.ruleset_set(text, jsonb, text) is
    'Adds a ruleset, or changes the named columns of one. {"is_current": true} makes the workers use it; the next full '
    'audit adds the candidates for it. Returns the row. Raises TM005 for an unknown column, and for a rule that does '
    'not exist.';
