create or replace function tidemark.source_rebuild(type anyelement, snapshot jsonb)
returns anyelement
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    bad record;
begin
    select a.attname, a.atttypid::regtype as type into bad
    from pg_type r join pg_attribute a on a.attrelid = r.typrelid and a.attnum > 0 and not a.attisdropped
    join pg_type t on t.oid = a.atttypid
    left join pg_type e on e.oid = t.typelem and t.typsubscript = 'array_subscript_handler'::regproc
    where r.oid = pg_typeof(source_rebuild.type)::oid and coalesce(e.oid, t.oid) >= 16384
      and coalesce(e.typtype, t.typtype) <> 'e'
      -- The domain's owner can act as the caller, so its checks gain that owner no rights.
      and not (t.typtype = 'd' and t.typbasetype < 16384 and pg_has_role(t.typowner, current_user, 'member'))
    order by a.attnum limit 1;
    if found then
        raise exception using errcode = 'TM005',
            message = format('the row is gone, and cannot be rebuilt from its snapshot: column %s is of type %s, whose '
                             'checks would run as the worker',
                             bad.attname, bad.type),
            hint = 'Discard the dead letter, or handle rows of this table as JSON (a Go handler, or emit).';
    end if;
    return jsonb_populate_record(source_rebuild.type, source_rebuild.snapshot);
end
$$;
comment on function tidemark.source_rebuild(anyelement, jsonb) is
    'Rebuilds a row that is gone from its snapshot. type: a null of the row''s type. Raises TM005 where a column''s '
    'type is neither built in nor an enum. A value of a domain runs the domain''s checks, so only a domain whose owner '
    'is a member of the caller''s role is accepted.';
grant execute on function tidemark.source_rebuild(anyelement, jsonb) to tidemark_executor;
