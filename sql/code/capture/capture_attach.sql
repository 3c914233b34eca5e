-- public
create or replace function tidemark.capture_attach(
    relation regclass,
    reason text,
    dry_run boolean default false,
    always boolean default false)
returns table (operation text, statement text)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
-- It waits for writers of the table, and every later writer waits for it.
set lock_timeout = '3s'
as $$
#variable_conflict use_column
declare
    name constant text := capture_attach.relation::text;
    problem text;
    advice text;
    code text := 'TM005';
    route integer;
    route_code text;
    trigger_name text;
    missing boolean;
    mine record;
    statements text[] := '{}';
    line text;
begin
    select c.*, n.nspname, k.relation as parent into mine
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    left join lateral (select p.relid::text as relation
                       from pg_partition_ancestors(c.oid) with ordinality p (relid, ord)
                       where c.relispartition order by p.ord desc limit 1) k on true
    where c.oid = capture_attach.relation;
    if mine.nspname in ('tidemark', 'pg_catalog', 'information_schema', 'pg_toast') then
        problem := format('%s is not captured: it is a table of %s itself', name,
                          case mine.nspname when 'tidemark' then 'Tidemark' else 'PostgreSQL' end);
        advice := 'Tidemark''s own changes are in tidemark.audit.';
    elsif mine.relkind in ('v', 'm', 'f', 'S', 'i', 'I', 'c', 't') then
        problem := format('%s is %s, not a table', name,
                          case mine.relkind when 'v' then 'a view' when 'm' then 'a materialized view'
                          when 'f' then 'a foreign table' when 'S' then 'a sequence' else 'something else' end);
        advice := 'Attach the tables below it.';
    elsif mine.relpersistence = 't' then
        problem := format('%s is a temporary table', name);
        advice := 'Other sessions do not see its changes: call tidemark.emit.';
    elsif mine.relispartition then
        problem := format('%s is a partition', name);
        advice := format('Attach its parent, %s.', mine.parent);
    elsif not pg_has_role(mine.relowner, 'usage') then
        code := '42501';
        problem := format('must be owner of table %s', name);
        advice := format('Attach it as %I, which needs tidemark_admin for that.', mine.relowner::regrole::text);
    elsif not exists (select from tidemark.inbound_route r
                      where r.source_object_kind = 'table' and r.source_schema = mine.nspname
                        and r.source_table = mine.relname) then
        problem := format('%s has no inbound route', name);
        advice := format('Make one first: select tidemark.inbound_route_set(''CODE'', ''%s'');', jsonb_build_object(
            'source_schema', mine.nspname, 'source_table', mine.relname, 'sql_event', 'insert', 'domain', '…',
            'type', '…'));
    else
        select format('inbound route %s: %s has no column %s that can be shown', r.route_code, name, c.missing),
               'Virtual generated columns cannot be; change payload_columns.'
        into problem, advice
        from tidemark.inbound_route r
        cross join lateral tidemark.capture_columns(capture_attach.relation, r.payload_columns) c
        where r.source_object_kind = 'table' and r.source_schema = mine.nspname and r.source_table = mine.relname
          and c.missing is not null
        order by r.route_code limit 1;
        if not found then
            select format('trigger %I of %s exists already and is not Tidemark''s', t.tgname, name),
                   'Rename it.' into problem, advice
            from pg_trigger t
            where t.tgrelid = capture_attach.relation and t.tgname like E'tidemark\\_capture\\_%'
              and not exists (select from tidemark.capture_attached x
                              where x.relation = t.tgrelid and x.trigger_name = t.tgname and x.as_attached)
            limit 1;
        end if;
    end if;
    if problem is not null then
        raise exception using errcode = code, message = problem, hint = advice;
    end if;

    for operation, route, route_code, trigger_name in
        select r.sql_event, r.id, r.route_code, t.trigger_name from tidemark.inbound_route r
        left join lateral (
            select a.trigger_name, a.enabled from tidemark.capture_attached a
            where a.relation = capture_attach.relation and a.operation = r.sql_event and a.as_attached
            order by array_position(array['A', 'O'], a.enabled) limit 1) t on true
        where r.source_object_kind = 'table' and r.source_schema = mine.nspname and r.source_table = mine.relname
          and (t.enabled = 'A' or t.enabled = 'O' and not always) is not true
        order by array_position(array['insert', 'update', 'delete', 'truncate'], r.sql_event)
    loop
        missing := trigger_name is null;
        if missing then
            trigger_name := format('tidemark_capture_%s', operation);
            statement := format('select tidemark.capture_make(%L)', route_code);
            return next;
            statements := statements || statement;
            statement :=
                format('create trigger %s after %s on %s%s for each statement execute function tidemark.capture_%s()',
                       trigger_name, operation, name, case operation
                           when 'insert' then ' referencing new table as tidemark_new'
                           when 'update' then ' referencing old table as tidemark_old new table as tidemark_new'
                           when 'delete' then ' referencing old table as tidemark_old' else '' end, route);
            return next;
            statements := statements || statement;
        end if;
        if always or not missing then
            statement := format('alter table %s enable%s trigger %I', name, case when always then ' always' else '' end,
                                trigger_name);
            return next;
            statements := statements || statement;
        end if;
    end loop;
    if statements = '{}' then
        raise exception using errcode = 'TM005',
            message = format('%s is attached already, for every operation that has an inbound route', name),
            hint = 'See: select * from tidemark.capture_list;';
    elsif not dry_run then
        -- What the trigger missed must be noted before it fires again.
        perform tidemark.capture_gaps_note(format('%I.%I', mine.nspname, mine.relname));
        perform tidemark.capture_record('capture_attach', capture_attach.relation, capture_attach.reason, statements);
        foreach line in array statements loop
            execute line;
        end loop;
    end if;
end
$$;
comment on function tidemark.capture_attach(regclass, text, boolean, boolean) is
    'Puts triggers on a table of the caller''s, one for each operation that has an inbound route, each with a function '
    'made for the table (tidemark.capture_make), and enables those that do not fire, which opens a gap for what they '
    'missed. Returns the SQL, one row for each statement. dry_run (default false): only returns the SQL. always '
    '(default false): the triggers also fire in sessions whose session_replication_role is replica; for what a '
    'subscription writes PostgreSQL fires no such triggers, except in its first copy of a table and for a truncate. '
    'Gives up after waiting 3 s for the table (55P03): call it again. Raises TM005 where the table cannot be attached '
    'or is attached already, 42501 for another owner''s table.';
grant execute on function tidemark.capture_attach(regclass, text, boolean, boolean) to tidemark_admin;
