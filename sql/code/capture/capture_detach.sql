-- public
create or replace function tidemark.capture_detach(relation regclass, reason text, dry_run boolean default false)
returns table (operation text, statement text)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set lock_timeout = '3s'
as $$
#variable_conflict use_column
declare
    statements text[] := '{}';
    line text;
begin
    for operation, statement in
        select t.operation, format('drop trigger %I on %s', t.trigger_name, capture_detach.relation)
        from tidemark.capture_attached t where t.relation = capture_detach.relation order by t.trigger_name
    loop
        return next;
        statements := statements || statement;
    end loop;
    if statements = '{}' then
        raise exception using errcode = 'TM004', message = format('%s is not attached', capture_detach.relation),
            hint = 'See: select * from tidemark.capture_list;';
    elsif not dry_run then
        perform tidemark.capture_record('capture_detach', capture_detach.relation, capture_detach.reason, statements);
        foreach line in array statements loop
            execute line;
        end loop;
        perform tidemark.capture_refresh();
    end if;
end
$$;
comment on function tidemark.capture_detach(regclass, text, boolean) is
    'Drops every trigger that capture_attach made from a table of the caller''s, and returns the SQL. dry_run (default '
    'false): only returns the SQL. Gives up after waiting 3 s for the table (55P03): call it again. To stop capturing '
    'for a while, disable the inbound route, which waits for no other session. Raises TM004 where the table has no '
    'such trigger.';
grant execute on function tidemark.capture_detach(regclass, text, boolean) to tidemark_admin;
