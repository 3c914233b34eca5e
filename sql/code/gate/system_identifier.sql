create or replace function tidemark.system_identifier()
returns bigint
-- Immutable, so that a plan has it as a constant, and a session reads the server's control file once: every pass of a
-- live worker asks. It cannot change while the server runs, and no plan outlives its session. Not in SQL, whose
-- functions are planned at each call.
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    return (select c.system_identifier from pg_control_system() c);
end
$$;
comment on function tidemark.system_identifier() is
    'Identifies the cluster of this server. A physical copy has the same.';
grant execute on function tidemark.system_identifier() to tidemark_reader, tidemark_executor;
