create schema if not exists demo_user;

create table if not exists demo_user.account (
    id bigint generated always as identity primary key,
    name text not null,
    email text not null unique
);

-- The effect of user.create, in the transaction of its result.
create or replace function demo_user.account_create(payload jsonb)
returns jsonb
language sql
as $$
    insert into demo_user.account (name, email) values (payload ->> 'name', payload ->> 'email')
    returning jsonb_build_object('id', id)
$$;

-- The service's role alone runs the function, with the rights that it has here and no others.
revoke all on function demo_user.account_create(jsonb) from public;
do $$
declare
    role constant name := (select s.role from tidemark.service s where s.service = 'user');
begin
    execute format('grant execute on function demo_user.account_create(jsonb) to %I', role);
    execute format('grant select, insert on demo_user.account to %I', role);
end $$;
