-- The server counts a change up to a minute after its commit.

set local role tidemark_owner;

alter table tidemark.capture_checkpoint add column ahead bigint not null default 0;
comment on column tidemark.capture_checkpoint.ahead is
    'Events of the minute before at whose changes the server had not counted yet. The next call does not miss them.';
