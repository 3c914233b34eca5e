create schema if not exists demo_billing;

create table if not exists demo_billing.card (
    customer text primary key
);
insert into demo_billing.card (customer) values ('ada'), ('bob'), ('cyd') on conflict do nothing;

create table if not exists demo_billing.charge (
    invoice bigint primary key,
    customer text not null references demo_billing.card,
    cents integer not null check (cents > 0)
);

-- The effect of billing.charge.capture, in the transaction of its result.
create or replace function demo_billing.charge_capture(payload jsonb)
returns jsonb
language plpgsql
as $$
begin
    if not exists (select from card c where c.customer = payload ->> 'customer') then
        raise exception 'the customer has no card';
    end if;
    insert into charge (invoice, customer, cents)
    values ((payload ->> 'invoice')::bigint, payload ->> 'customer', (payload ->> 'cents')::integer);
    return jsonb_build_object('invoice', payload -> 'invoice', 'charged', payload -> 'cents');
end
$$;

-- The service's role alone runs the function, with the rights that it has here and no others.
revoke all on function demo_billing.charge_capture(jsonb) from public;
do $$
declare
    role constant name := (select s.role from tidemark.service s where s.service = 'billing');
begin
    execute format('grant execute on function demo_billing.charge_capture(jsonb) to %I', role);
    execute format('grant select on demo_billing.card to %I', role);
    execute format('grant select, insert on demo_billing.charge to %I', role);
end $$;
