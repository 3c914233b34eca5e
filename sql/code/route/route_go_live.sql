-- public
-- Not a security definer: each step runs with the caller's rights.
create or replace function tidemark.route_go_live(route_code text, reason text)
returns table (switch text, changed boolean, was text, sql text)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    s record;
begin
    if coalesce(btrim(reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'going live needs a reason: the audit records it',
            hint = 'select * from tidemark.route_go_live(''ROUTE'', ''why'');';
    end if;
    for s in select * from tidemark.route_switches(route_go_live.route_code, reason) loop
        if not s.is_open then
            execute s.sql;
        end if;
        switch := s.switch;
        changed := not s.is_open;
        was := s.state;
        sql := s.sql;
        return next;
    end loop;
end
$$;
comment on function tidemark.route_go_live(text, text) is
    'Opens all that keeps the route from delivering (tidemark.route_switches), in one transaction, with a reason for '
    'the audit, and returns what it changed. Events that its worker has read already are not sent: '
    'tidemark.route_replay sends them. tidemark.worker_outlook shows what waits. Raises TM004, TM005.';
grant execute on function tidemark.route_go_live(text, text) to tidemark_admin;
