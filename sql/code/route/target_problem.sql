create or replace function tidemark.target_problem(
    target_kind text,
    target_ref text,
    options jsonb,
    out problem text,
    out hint text)
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    rules constant jsonb := tidemark.target_rules();
    kind jsonb;
    rule jsonb;
    named record;
    chosen text;
begin
    select k into kind from jsonb_array_elements(rules -> 'kinds') k where k ->> 'kind' = target_kind;
    if kind is null then
        problem := format('there is no kind of target "%s"', left(target_kind, 100));
        hint := (select 'Kinds: ' || string_agg(k ->> 'kind', ', ') || '.'
                 from jsonb_array_elements(rules -> 'kinds') k);
        return;
    end if;

    -- No reference is repeated: it may hold a password.
    hint := format('For %s, target_ref is %s, such as %s.', target_kind, kind ->> 'ref', kind ->> 'example');
    for rule in select jsonb_array_elements(kind -> 'rules') loop
        if coalesce(target_ref collate "C" !~ (rule ->> 'must'), target_ref collate "C" ~ (rule ->> 'not')) then
            problem := 'target_ref ' || (rule ->> 'problem');
            return;
        end if;
    end loop;
    if octet_length(target_ref) > (kind ->> 'max_bytes')::integer then
        problem := format('target_ref has more than %s bytes', kind ->> 'max_bytes');
        return;
    end if;
    if kind ? 'url' then
        -- Of the query and of the path. No name is encoded by now.
        select lower(split_part(p.part, '=', 1) collate "C") into chosen
        from regexp_split_to_table(target_ref, '[?&;]') with ordinality p (part, n)
        where p.n > 1 and lower(split_part(p.part, '=', 1) collate "C")
                          ~ any (array(select jsonb_array_elements_text(rules -> 'secret_name')))
        order by p.n limit 1;
        if found then
            problem := format('target_ref holds a secret in plain text, the parameter %s', left(chosen, 100));
            hint := 'Readers and the audit see target_ref. Send it as a header: the option headers, '
                '{"Authorization": {"secret": "NAME"}}.';
            return;
        end if;
    end if;

    for named in select o.key, o.value from jsonb_each(options) o order by o.key collate "C" loop
        select o into rule from jsonb_array_elements(rules -> 'options') o
        where o ->> 'option' = named.key and o -> 'kinds' ? target_kind;
        if not found then
            problem := format('there is no option "%s" for %s', left(named.key, 100), target_kind);
            hint := (select coalesce(format('Options of %s: ', target_kind) || string_agg(o ->> 'option', ', ') || '.',
                                     format('A route to %s takes no options.', target_kind))
                     from jsonb_array_elements(rules -> 'options') o where o -> 'kinds' ? target_kind);
            return;
        end if;
        select p.problem, p.hint into problem, hint from tidemark.target_option_problem(rules, rule, named.value) p;
        if problem is not null then
            return;
        end if;
    end loop;

    if kind ? 'one_of' then
        select string_agg(o, ' and ') into chosen from jsonb_array_elements_text(kind -> 'one_of') o
        where coalesce(options -> o, 'false') <> 'false';
        hint := (select string_agg(format('%s: %s', o ->> 'option', o ->> 'meaning'), '; ') || '.'
                 from jsonb_array_elements(rules -> 'options') o where kind -> 'one_of' ? (o ->> 'option'));
        if chosen is null then
            problem := (select format('a route to %s needs the option ', target_kind) || string_agg(o, ' or ')
                        from jsonb_array_elements_text(kind -> 'one_of') o);
            return;
        elsif chosen ~ ' and ' then
            problem := format('the options %s exclude each other', chosen);
            return;
        end if;
    end if;
    hint := null;
end
$$;
comment on function tidemark.target_problem(text, text, jsonb) is
    'What is wrong with the kind, the reference or the options of a route''s target, by tidemark.target_rules, with a '
    'hint. Null: nothing. Problem and hint never repeat a value that may be a secret. The daemon''s configuration is '
    'not known here.';
grant execute on function tidemark.target_problem(text, text, jsonb)
    to tidemark_reader, tidemark_executor, tidemark_admin;
