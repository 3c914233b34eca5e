create or replace function tidemark.configuration_delete(kind text, name text, reason text)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    of_type constant text[] := regexp_match(name, '^([^/]*)/(.*)$');
    source text;
begin
    case kind
    when 'domain' then perform tidemark.domain_delete(name, reason);
    when 'type' then perform tidemark.type_delete(of_type[1], of_type[2], reason);
    when 'capture' then perform tidemark.inbound_route_delete(name, reason);
    when 'source' then perform tidemark.source_delete(name, reason);
    when 'worker' then
        for source in select distinct c.source from tidemark.worker_cursor c
                      where c.worker = name and c.source <> 'outbox' loop
            perform tidemark.worker_source_remove(name, source, reason);
        end loop;
        perform tidemark.worker_delete(name, reason);
    when 'route' then perform tidemark.route_delete(name, reason);
    when 'heartbeat' then perform tidemark.heartbeat_deregister(name, reason);
    when 'gate' then null; -- a gate stays as it is
    end case;
    perform tidemark.configuration_disown(kind, name);
end
$$;
comment on function tidemark.configuration_delete(text, text, text) is
    'Deletes one thing of tidemark.configuration() by the function for its kind, and a worker''s cursors of sources '
    'with it. A gate stays as it is.';
grant execute on function tidemark.configuration_delete(text, text, text) to tidemark_admin;
