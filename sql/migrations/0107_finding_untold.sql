-- Events about findings that could not be emitted, as the log was locked, are emitted later.

set local role tidemark_owner;

alter table tidemark.finding add column untold text[];
comment on column tidemark.finding.untold is 'Events that are still to be emitted, in their order, since the log was locked; null: none.';
create index finding_untold on tidemark.finding (id) where untold is not null;

-- It has a parameter more.
drop function if exists tidemark.system_event;
-- It returns whether it is done.
drop function if exists tidemark.finding_event;
