create or replace function tidemark.error_means(code text)
returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select case
        when code = 'TM001' then 'the event type is not registered or not enabled'
        when code like 'TM%' then 'Tidemark refused it (see docs/errors.md)'
        when code in ('57014', '55P03') then 'it took too long'
        when code like '40%' then 'it collided with another transaction'
        when code like '22%' then 'a value cannot be read, or is out of range'
        when code like '23%' then 'a constraint of the database is violated'
        when code = '42501' then 'a right is missing'
        when code = '42P01' then 'a table is missing'
        when code = '42703' then 'a column is missing'
        when code = '42883' then 'a function or an operator is missing'
        when code = '0A000' then 'the server does not support it'
        when code like '42%' then 'an object, a right or the statement is wrong'
        when code = 'transform_failed' then 'the route''s transform raised an error'
        when code = 'connect' then 'the target cannot be reached'
        when code ~ '^http_[0-9]{3}$' then 'the target answered with HTTP status ' || substr(code, 6)
        when code = 'given_up' then 'an operator gave it up'
        when code like 'P0%' then 'the function raised an error'
        else 'the message is for operators'
    end
$$;
comment on function tidemark.error_means(text) is
    'What an SQLSTATE or a reason of Tidemark means, in Tidemark''s own words, for roles that may not see the '
    'error''s message: the message may quote a payload.';
grant execute on function tidemark.error_means(text) to tidemark_reader, tidemark_executor;
