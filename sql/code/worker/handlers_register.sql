create or replace function tidemark.handlers_register(worker text, patterns text[], starts text default 'now')
returns table (route_code text, pattern text, enabled boolean, dry_run boolean)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    p text;
    code text;
begin
    perform set_config('tidemark.reason', 'registered by a Go program', true);
    if exists (select from tidemark.worker w where w.worker = handlers_register.worker and w.handler <> 'go') then
        raise exception using errcode = 'TM005',
            message = format('worker %s delivers by routes: a Go program needs a worker of its own',
                             handlers_register.worker),
            hint = 'Give the program another worker name.';
    end if;
    insert into tidemark.worker as w (worker, handler, description)
    values (handlers_register.worker, 'go', 'Functions of a Go program.') on conflict do nothing;
    perform tidemark.worker_cursor_make(handlers_register.worker, handlers_register.starts);
    foreach p in array patterns loop
        if p !~ '^([*]|[^/*]+)/([*]|[^*]+|[^*]+[.][*])$' then
            raise exception using errcode = 'TM005', message = format('"%s" is no pattern', p),
                hint = 'Write DOMAIN/TYPE, where TYPE is exact, a prefix such as order.*, or *; DOMAIN may be * too.';
        end if;
        code := handlers_register.worker || '.'
            || regexp_replace(replace(replace(p, '*', 'all'), '/', '.'), '[^A-Za-z0-9_.-]', '-', 'g');
        insert into tidemark.outbound_route (route_code, worker, domain, type, target_kind, target_ref, ordering,
                                             description)
        select case when length(code) <= 63 then code else left(code, 54) || '-' || left(md5(p), 8) end,
               handlers_register.worker, split_part(p, '/', 1), substr(p, strpos(p, '/') + 1), 'go', p,
               'key', 'Function of a Go program.'
        where not exists (select from tidemark.outbound_route r
                          where r.worker = handlers_register.worker and r.target_kind = 'go' and r.target_ref = p);
    end loop;
    return query
    select r.route_code, r.target_ref, r.enabled, r.dry_run from tidemark.outbound_route r
    where r.worker = handlers_register.worker and r.target_kind = 'go' and r.target_ref = any (patterns)
    order by r.id;
end
$$;
comment on function tidemark.handlers_register(text, text[], text) is
    'Creates the worker of a Go program, its cursor at starts (as in tidemark.worker_set; a worker that has begun '
    'stays where it is), and a route for each of its patterns (DOMAIN/TYPE), off and in dry run as every new one, with '
    'ordering by key. Leaves existing ones as they are. Returns the routes. Raises TM005 for an invalid pattern, and '
    'for a worker that delivers by routes.';
grant execute on function tidemark.handlers_register(text, text[], text) to tidemark_executor;
