create or replace function tidemark.configuration_change(
    file text, things jsonb, reason text, prune boolean, take boolean)
returns table (change text, kind text, name text, field text, was jsonb, becomes jsonb)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    -- Exports of earlier releases have it; its worker, which reads Kafka, obeys none.
    no_gate constant text := 'worker.commands.enabled';
    ignored boolean := false;
    before jsonb;
    after jsonb;
    t record;
    code text;
    problem text;
    advice text;
begin
    if configuration_change.file is null or configuration_change.file !~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$' then
        raise exception using errcode = 'TM005', message = 'a file needs a name: ' ||
            'letters, digits, _ . and -, at most 63, and none of . and - at the beginning';
    elsif coalesce(btrim(configuration_change.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'applying a file needs a reason';
    elsif jsonb_typeof(things) is distinct from 'array' then
        raise exception using errcode = 'TM005', message = 'things must be an array',
            hint = 'An empty array is a file without things.';
    end if;
    before := (select jsonb_object_agg(c.kind || ' ' || c.name, to_jsonb(c)) from tidemark.configuration() c);
    for t in
        select x.kind, x.name, x.definition from jsonb_to_recordset(things) x (kind text, name text, definition jsonb)
        left join tidemark.configuration_kind k on k.kind = x.kind
        order by coalesce(k.place, case x.kind when 'heartbeat' then 7 else 8 end), x.name
    loop
        if t.kind = 'gate' and t.name = no_gate and not exists (
                select from tidemark.worker w where 'worker.' || w.worker || '.enabled' = no_gate
                                                and w.source <> 'kafka') then
            ignored := true;
            continue;
        end if;
        begin
            perform tidemark.configuration_own(t.kind, t.name, configuration_change.file, take, reason);
            if before -> (t.kind || ' ' || t.name) -> 'definition' is distinct from t.definition then
                perform tidemark.configuration_set(t.kind, t.name, t.definition, reason, prune);
            end if;
        exception when others then
            get stacked diagnostics code = returned_sqlstate, problem = message_text, advice = pg_exception_hint;
            raise exception using errcode = code, hint = advice,
                message = case when strpos(problem, t.name) > 0 then problem
                               else format('%s %s: %s', t.kind, t.name, problem) end;
        end;
    end loop;
    for t in
        select o.kind, o.name, before ? (o.kind || ' ' || o.name) as there from tidemark.owned o
        left join tidemark.configuration_kind k on k.kind = o.kind
        where o.file = configuration_change.file and prune and not exists (
            select from jsonb_to_recordset(things) x (kind text, name text) where x.kind = o.kind and x.name = o.name)
        order by coalesce(k.place, 7) desc, o.name
    loop
        if t.there then
            perform tidemark.configuration_delete(t.kind, t.name, reason);
        else
            perform tidemark.configuration_disown(t.kind, t.name);
        end if;
    end loop;

    after := (
        select jsonb_object_agg(c.kind || ' ' || c.name, to_jsonb(c)) from tidemark.configuration() c);
    return query
    select d.change, d.kind, d.name, d.field, d.was, d.becomes
    from (
        select coalesce(b.value, a.value) ->> 'kind', coalesce(b.value, a.value) ->> 'name',
               (coalesce(b.value, a.value) ->> 'place')::integer, b.value, a.value
        from jsonb_each(before) b full join jsonb_each(after) a on a.key = b.key
        where a.value is distinct from b.value
           or a.value ->> 'file' = configuration_change.file and not exists (
               select from jsonb_to_recordset(things) x (kind text, name text)
               where x.kind = a.value ->> 'kind' and x.name = a.value ->> 'name')
    ) c (kind, name, place, b, a)
    cross join lateral (
        select case when c.b is null then 'create' when c.a is null then 'delete'
                    when c.a = c.b then 'left'
                    when c.a ->> 'file' is null then 'release' when c.b ->> 'file' is null then 'adopt'
                    else 'take' end,
               c.kind, c.name, null, nullif(c.b -> 'file', 'null'), nullif(c.a -> 'file', 'null')
        where c.b is null or c.a is null or c.a = c.b or c.a -> 'file' is distinct from c.b -> 'file'
        union all
        select 'set', c.kind, c.name, coalesce(f.key, g.key), f.value, g.value
        from jsonb_each(coalesce(c.b -> 'definition', '{}')) f
        full join jsonb_each(coalesce(c.a -> 'definition', '{}')) g on g.key = f.key
        where f.value is distinct from g.value and c.a is not null
    ) d (change, kind, name, field, was, becomes)
    order by c.place, c.name, d.change <> 'set' desc, d.field;
    if ignored then
        return query select 'ignored', 'gate', no_gate, null, null::jsonb, null::jsonb;
    end if;
end
$$;
comment on function tidemark.configuration_change(text, jsonb, text, boolean, boolean) is
    'What tidemark.configuration_apply does, beside one that is under way. tidemark plan calls it, and rolls it back.';
grant execute on function tidemark.configuration_change(text, jsonb, text, boolean, boolean) to tidemark_admin;
