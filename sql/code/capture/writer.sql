-- A capture must not fail the statement of a subscription's apply worker, which would retry it forever. From PostgreSQL
-- 16 on that worker runs triggers as the table's owner. Captures only record the login, and decide nothing by it.
create or replace function tidemark.writer()
returns text
language plpgsql volatile
as $$
begin
    return tidemark.login(quick => true);
exception when insufficient_privilege or sqlstate 'TM015' then
    return '(unknown)';
end
$$;
comment on function tidemark.writer() is
    'The login whose statement is captured (tidemark.login). (unknown): PostgreSQL runs a table owner''s code in the '
    'session of another role, such as that of a subscription.';
