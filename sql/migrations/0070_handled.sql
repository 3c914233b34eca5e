-- Handlers of a Go program that work at the same time, each in a transaction of its own.

set local role tidemark_owner;

create table tidemark.handled (
    route_id integer not null references tidemark.outbound_route (id) on delete cascade,
    seq bigint not null,
    primary key (route_id, seq)
);
comment on table tidemark.handled is 'Events that a handler of a Go program has handled in a transaction of its own and whose outcome is not settled yet. A row commits with the handler''s effects; the settle removes it. After a crash between the two, the handler is not called again.';
comment on column tidemark.handled.route_id is 'The handler''s route.';
comment on column tidemark.handled.seq is 'Number of the event.';
grant select on tidemark.handled to tidemark_reader, tidemark_executor;
