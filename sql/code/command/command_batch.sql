-- Granted to no role, as tidemark.command_effects: tidemark.command_run and tidemark.command_retry_one call it.
create or replace function tidemark.command_batch(calls jsonb)
returns table ("position" integer, status text, document json)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    most constant integer := 50;
    items jsonb[];
    got record;
begin
    if jsonb_typeof(calls) is distinct from 'array' or jsonb_array_length(calls) not between 1 and most then
        raise exception using errcode = 'TM005',
            message = format('a batch of commands has %s, and must have 1 to %s', case jsonb_typeof(calls)
                when 'array' then jsonb_array_length(calls) || ' commands' else 'no array' end, most),
            hint = 'Give an array of checked commands.';
    end if;
    perform tidemark.session_check('a command', 'otherwise a command would not see the claim of the one before it.');
    items := array(select e from jsonb_array_elements(calls) e);
    perform tidemark.command_gate_check(items);
    got := tidemark.command_effects(items);
    return query select d.n::integer, d.status, d.doc
                 from unnest(got.told, got.documents) with ordinality d (status, doc, n);
end
$$;
comment on function tidemark.command_batch(jsonb) is
    'Runs up to 50 checked commands in this transaction, once it has asked for their gates: tidemark.command_effects. '
    'Returns for each position its status and document. Raises TM009 where a gate is closed or a command is off, '
    'TM006, TM007.';
