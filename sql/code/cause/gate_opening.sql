create or replace function tidemark.gate_opening(gate text, worker text, reason text, out sql text, out cli text)
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    select case gate_opening.gate
               when 'paused' then format('select tidemark.worker_pause(%L, false, %L);', gate_opening.worker, reason)
               when 'stage' then format('select tidemark.stage_set(''live'', %L);', reason)
               else 'select tidemark.gate_set(' || quote_literal(gate_opening.gate)
                   || format(', true, %L);', reason) end,
           case gate_opening.gate
               when 'paused' then format('tidemark worker resume %s', tidemark.shell_word(gate_opening.worker))
               when 'stage' then 'tidemark stage live'
               else 'tidemark gate open ' || tidemark.shell_word(gate_opening.gate) end
               || ' --reason ' || tidemark.shell_word(reason)
$$;
comment on function tidemark.gate_opening(text, text, text) is
    'The statement and the command that open a gate, as tidemark.closed_gate names it for the worker: a setting, '
    'paused or stage. Null: no gate is given.';
grant execute on function tidemark.gate_opening(text, text, text) to tidemark_reader, tidemark_executor;
