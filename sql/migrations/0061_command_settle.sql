-- What a command's function leaves behind: constraint triggers that defer themselves again, settings.

set local role tidemark_owner;
create unlogged table tidemark.command_mark (
    marked boolean not null default true
);
comment on table tidemark.command_mark is 'Empty. A row that is written here has the number of its statement in the transaction, by which tidemark.command_settle tells whether anything was written between two of them.';
comment on column tidemark.command_mark.marked is 'True.';

-- It has one parameter more.
drop function if exists tidemark.command_execute;
