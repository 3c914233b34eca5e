-- public
create or replace function tidemark.source_advise(definition tidemark.source)
returns table (safety text, status text, detail text, hint text)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    foreach safety in array array['sequence', 'clock', 'declared', 'capture'] loop
        definition.safety := safety;
        definition.sweep_window :=
            case when safety in ('clock', 'declared') then coalesce(definition.sweep_window, interval '1 hour') end;
        select case max(case c.status when 'fail' then 3 when 'warn' then 2 else 1 end)
                   when 3 then 'fail' when 2 then 'warn' else 'ok' end,
               coalesce(string_agg(c."check" || ': ' || c.detail, '; ' order by c.n) filter (where c.status = 'fail'),
                        string_agg(c."check" || ': ' || c.detail, '; ' order by c.n) filter (where c.status = 'warn'),
                        ''),
               coalesce((array_agg(c.hint order by c.n) filter (where c.status = 'fail' and c.hint <> ''))[1],
                        (array_agg(c.hint order by c.n) filter (where c.status = 'warn' and c.hint <> ''))[1], '')
        into status, detail, hint
        from tidemark.source_check(tidemark.source_guess(definition))
             with ordinality c ("check", status, detail, hint, n);
        return next;
    end loop;
end
$$;
comment on function tidemark.source_advise(tidemark.source) is
    'Which safety suits a table, strongest first: for each safety the worst result of tidemark.source_check, its '
    'finding and the first step to take. declared and clock are checked with a sweep_window, 1 hour unless given. '
    'tidemark.source_guess fills in columns that are null.';
grant execute on function tidemark.source_advise(tidemark.source) to tidemark_reader, tidemark_executor;
