create or replace function tidemark.command_ingress(
    envelope text, misfit jsonb, overdue boolean default false, judged text default null)
returns json
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    document json;
begin
    perform set_config('tidemark.pooled', 'true', true);
    document := tidemark.command_ask(command_ingress.envelope, null, 'ingress', command_ingress.misfit, false,
                                     command_ingress.overdue, command_ingress.judged);
    perform tidemark.command_reset(), tidemark.flush_on_commit();
    return document;
end
$$;
comment on function tidemark.command_ingress(text, jsonb, boolean, text) is
    'tidemark.command_run for the daemon''s HTTP ingress, which has verified metadata.producer; misfit: what it found '
    'wrong with the payload, and of which schema; overdue: it did not come to an end before, and is parked without '
    'being run; judged: digest of the schema by which it judged the payload, empty: SQL checks all of it; null: an '
    'earlier release, which does not tell. It also resets the settings of the session. Raises 55P03 where the schema '
    'is another one by now.';
grant execute on function tidemark.command_ingress(text, jsonb, boolean, text) to tidemark_executor;
