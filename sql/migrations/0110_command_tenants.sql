-- A producer with no tenants asks for nothing.

set local role tidemark_owner;

comment on column tidemark.command_producer.tenants is 'Tenants for which the producer may ask; with "*" all, and none; empty: nothing. Null (default): only commands without a tenant.';
