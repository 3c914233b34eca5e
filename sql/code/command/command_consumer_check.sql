create or replace function tidemark.command_consumer_check()
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    closed constant text := tidemark.closed_gate('commands');
begin
    if closed is not null then
        raise exception using errcode = 'TM009', message = 'no command ran: closed by ' || closed,
            hint = 'Gates: tidemark gate open GATE. Paused: tidemark worker resume commands --reason …';
    end if;
end
$$;
comment on function tidemark.command_consumer_check() is
    'Raises TM009 if something keeps the daemon from all commands of Kafka and from parked ones: the gate '
    'commands.enabled, a pause of the worker commands, or the stage.';
