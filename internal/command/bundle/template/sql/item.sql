create schema if not exists SCHEMA;

create table if not exists SCHEMA.item (
    id bigint primary key,
    name text not null
);

-- The effect of SERVICE.item.create, in the transaction of its result.
create or replace function SCHEMA.item_create(payload jsonb, context jsonb)
returns jsonb
language sql
as $$
    insert into SCHEMA.item (id, name) values ((payload ->> 'id')::bigint, payload ->> 'name')
    returning jsonb_build_object('id', id)
$$;

-- The service's role runs the function, with the rights that it has here. tidemark command apply uses the role that is there.
do $$
begin
    if not exists (select from pg_roles where rolname = 'tidemark_service_SERVICE') then
        create role "tidemark_service_SERVICE" nologin;
    end if;
end $$;
grant select, insert on SCHEMA.item to "tidemark_service_SERVICE";
