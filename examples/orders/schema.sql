-- The service's own table, and the event that it emits.
create table orders (
    id text primary key,
    customer text not null,
    cents bigint not null check (cents > 0),
    created_at timestamptz not null default now(),
    event_id text
);

select tidemark.type_set('shop', 'order.created', '{
    "description": "A customer has ordered something.",
    "schema": {
        "type": "object", "required": ["id", "customer", "cents"],
        "properties": {"id": {"type": "string"}, "customer": {"type": "string"}, "cents": {"type": "integer"}}}}');
