create or replace function tidemark.target_option_problem(
    rules jsonb,
    rule jsonb,
    value jsonb,
    out problem text,
    out hint text)
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    plain constant text := value #>> '{}';
    must text := rule ->> 'must';
    good boolean;
begin
    case rule ->> 'type'
    when 'headers' then
        select p.problem, p.hint into problem, hint from tidemark.target_headers_problem(rules, value) p;
        return;
    when 'secret' then
        good := jsonb_typeof(value) = 'string' and plain collate "C" ~ (rules ->> 'name')
            and plain collate "C" !~ (rules ->> 'key_prefix');
    when 'text' then
        good := jsonb_typeof(value) = 'string' and plain collate "C" ~ (rule ->> 'pattern')
            and (not rule ? 'max' or length(plain) <= (rule ->> 'max')::integer);
    when 'boolean' then
        good := jsonb_typeof(value) = 'boolean';
        must := 'true or false';
    when 'choice' then
        good := jsonb_typeof(value) = 'string' and rule -> 'choices' ? plain;
        must := (select 'one of ' || string_agg(c, ', ') from jsonb_array_elements_text(rule -> 'choices') c);
    else
        good := jsonb_typeof(value) = 'number';
        if good then
            good := plain::numeric between (rule ->> 'min')::numeric and (rule ->> 'max')::numeric
                and (rule ->> 'type' = 'number' or plain::numeric = trunc(plain::numeric));
        end if;
        must := format('a %s from %s to %s', case rule ->> 'type' when 'whole' then 'whole number' else 'number' end,
                       rule ->> 'min', rule ->> 'max');
    end case;
    if not good then
        problem := case when rule ->> 'type' = 'secret' then format('option "%s" must be %s', rule ->> 'option', must)
                        else format('option "%s" is %s, must be %s', rule ->> 'option',
                                    left(value::text, 100), must) end;
        hint := format('%s: %s.', rule ->> 'option', rule ->> 'meaning');
    end if;
end
$$;
comment on function tidemark.target_option_problem(jsonb, jsonb, jsonb) is
    'Part of tidemark.target_problem: what is wrong with the value of one option, by its rule. Null: nothing.';
grant execute on function tidemark.target_option_problem(jsonb, jsonb, jsonb)
    to tidemark_reader, tidemark_executor, tidemark_admin;
