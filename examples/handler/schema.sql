-- The program's own tables.
create table entry (
    order_id text primary key,
    customer text not null,
    cents bigint not null,
    booked_at timestamptz not null default now()
);
create table balance (customer text primary key, cents bigint not null);
create table closing (until timestamptz not null); -- the program books nothing before then

-- The event type that it handles, unless it is registered already.
select tidemark.type_set('shop', 'order.created')
where not exists (select from tidemark.event_type where domain = 'shop' and type = 'order.created');
