-- The program's own tables.
create table entry (
    order_id text primary key,
    customer text not null,
    cents bigint not null,
    booked_at timestamptz not null default now()
);
create table balance (customer text primary key, cents bigint not null);
create table closing (until timestamptz not null); -- nothing is booked before then

-- The event that it handles, if nobody has registered it yet.
select tidemark.type_set('shop', 'order.created')
where not exists (select from tidemark.event_type where domain = 'shop' and type = 'order.created');
