-- Services of an application of yours that have these names stay as they are.
do $$
begin
    if exists (select from tidemark.command c where c.service in ('billing', 'user')
               and coalesce(c.function::text, '') not like 'demo\_%') then
        raise exception using errcode = 'TM005',
            message = 'the services billing or user are there already, with commands that are not of this pack',
            hint = 'Install the pack in a database of its own.';
    end if;
end $$;
select tidemark.service_set('billing', '{"description": "Charges customers for invoices"}');
select tidemark.service_set('user', '{"description": "Has the accounts of users"}');
