create or replace function tidemark.rows_register(worker text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if exists (select from tidemark.worker w
               where w.worker = rows_register.worker and (w.source, w.handler) <> ('table', 'go')) then
        raise exception using errcode = 'TM005',
            message = format('worker %s is of another kind: a Go program that takes rows needs a worker of its own',
                             rows_register.worker),
            hint = 'Choose another Config.Worker.';
    end if;
    insert into tidemark.worker (worker, source, handler, description)
    values (rows_register.worker, 'table', 'go', 'Functions of a Go program that take rows.') on conflict do nothing;
end
$$;
comment on function tidemark.rows_register(text) is
    'Creates the worker of a Go program that takes rows, if it does not exist, with its gate closed. Raises TM005 '
    'where it is a worker of another kind.';
grant execute on function tidemark.rows_register(text) to tidemark_executor;
