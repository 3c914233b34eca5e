-- The expressions run with the rights of the log's owner, so they must run no code of the table's owner: output
-- functions (format) make text, never casts; only built-in types become JSON; rows are compared by their bytes, not by
-- operators. The function is in PL/pgSQL, which keeps the plan: a function in SQL would be planned for every captured
-- statement.
create or replace function tidemark.capture_columns(
    relation regclass,
    contract text[],
    out names text,
    out key_text text,
    out key_json text,
    out old_key_json text,
    out key_changed text,
    out changed text,
    out shown text,
    out bytes text,
    out may_fail boolean,
    out missing text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    with attribute as (
        select a.attnum, a.attname::text as name, c.ord as in_contract, k.ord as in_key, t.typlen = -1 as of_any_length,
               coalesce(nullif(t.typbasetype, 0), t.oid) in ('json'::regtype, 'json[]'::regtype) as is_json,
               case when t.typtype <> 'd' and t.oid < 16384 then '%s'
                    when t.typtype = 'd' and b.typtype <> 'd' and b.oid < 16384 then '%s::' || format_type(b.oid, null)
                    else 'nullif(format(''%%s'', %1$s), case when %1$s is null then '''' end)' end as json
        from pg_attribute a
        join pg_type t on t.oid = a.atttypid
        left join pg_type b on b.oid = t.typbasetype
        left join unnest(contract) with ordinality c (name, ord) on c.name = a.attname and a.attgenerated <> 'v'
        left join (pg_index i cross join unnest(i.indkey::int2[]) with ordinality k (attnum, ord))
            on i.indrelid = relation and i.indisprimary and k.ord <= i.indnkeyatts and k.attnum = a.attnum
        where a.attrelid = relation and a.attnum > 0 and not a.attisdropped
    ), expression as (
        select a.*, format('format(''%%s'', n.c%s)', a.attnum) as text,
               format('%L, %s', a.name, format(a.json, 'n.c' || a.attnum)) as pair,
               format('%L, %s', a.name, format(a.json, 'o.c' || a.attnum)) as old_pair,
               format('record_image_ne(row(n.c%1$s), row(o.c%1$s))', a.attnum) as differs
        from attribute a
    )
    select coalesce(string_agg(format('x.%I as c%s', e.name, e.attnum), ', ' order by e.attnum), '1 as c0'),
           coalesce(case when count(e.in_key) > 1
                              then 'concat_ws('','', '
                                   || string_agg(e.text, ', ' order by e.in_key) filter (where e.in_key > 0) || ')'
                         else max(e.text) filter (where e.in_key > 0) end, 'null::text'),
           coalesce('jsonb_build_object(' || string_agg(e.pair, ', ' order by e.in_key) filter (where e.in_key > 0)
                    || ')', 'null::jsonb'),
           coalesce('jsonb_build_object(' || string_agg(e.old_pair, ', ' order by e.in_key) filter (where e.in_key > 0)
                    || ')', 'null::jsonb'),
           coalesce(string_agg(e.differs, ' or ') filter (where e.in_key > 0), 'false'),
           'array_remove(array['
               || coalesce(string_agg(format('case when %s then %L end', e.differs, e.name), ', ' order by e.attnum),
                           '') || ']::text[], null)',
           -- A function takes at most 100 arguments.
           coalesce((select string_agg('jsonb_build_object(' || x.pairs || ')', ' || ' order by x.chunk)
                     from (select (s.in_contract - 1) / 50 as chunk,
                                  string_agg(s.pair, ', ' order by s.in_contract) as pairs
                           from expression s where s.in_contract > 0 group by 1) x), 'null::jsonb'),
           coalesce(string_agg(format('coalesce(octet_length(format(''%%s'', n.c%s)), 0)::bigint', e.attnum), ' + ')
                    filter (where e.in_contract > 0 and e.of_any_length), '0'),
           coalesce(bool_or(e.is_json) filter (where e.in_contract > 0), false),
           (select string_agg(quote_ident(w.name), ', ' order by w.ord)
            from unnest(contract) with ordinality w (name, ord)
            where not exists (select from attribute a where a.name = w.name and a.in_contract > 0))
    into names, key_text, key_json, old_key_json, key_changed, changed, shown, bytes, may_fail, missing
    from expression e;
end
$$;
comment on function tidemark.capture_columns(regclass, text[]) is
    'SQL over a row n of a transition table (and o, the row before), whose columns are named c and their number: the '
    'primary key as text and as JSON, the changed columns, the contract''s columns as JSON and their bytes. names: the '
    'columns of the table x under these names, which cannot clash with a variable. may_fail: JSON among them may be '
    'unreadable. missing: columns of the contract that the table lacks or cannot show.';
grant execute on function tidemark.capture_columns(regclass, text[]) to tidemark_reader, tidemark_executor;
