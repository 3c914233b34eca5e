create or replace function tidemark.gate_opening(gate text, worker text, reason text, out sql text, out cli text)
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    select case when gate_opening.gate = 'paused'
                    then format('select tidemark.worker_pause(%L, false, %L);', gate_opening.worker, reason)
                when gate_opening.gate = 'stage' then format('select tidemark.stage_set(''live'', %L);', reason)
                when gate_opening.gate like 'route %'
                    then format('select tidemark.route_resume(%L, %L);', substr(gate_opening.gate, 7), reason)
                else 'select tidemark.gate_set(' || quote_literal(gate_opening.gate)
                    || format(', true, %L);', reason) end,
           case when gate_opening.gate = 'paused'
                    then format('tidemark worker resume %s', tidemark.shell_word(gate_opening.worker))
                when gate_opening.gate = 'stage' then 'tidemark stage live'
                when gate_opening.gate like 'route %'
                    then 'tidemark route resume ' || tidemark.shell_word(substr(gate_opening.gate, 7))
                else 'tidemark gate open ' || tidemark.shell_word(gate_opening.gate) end
               || ' --reason ' || tidemark.shell_word(reason)
$$;
comment on function tidemark.gate_opening(text, text, text) is
    'The statement and the command that open a gate, as tidemark.closed_delivery names it for the worker: a setting, '
    'paused, stage, or "route CODE", a paused route. Null: no gate is given.';
grant execute on function tidemark.gate_opening(text, text, text) to tidemark_reader, tidemark_executor;
