-- A pass takes fewer statements: claim and settle return more, and some parts are read within a larger statement.

set local role tidemark_owner;

drop function if exists tidemark.claim, tidemark.settle, tidemark.history_add, tidemark.unfinished, tidemark.worker_routes,
    tidemark.pass_summary;
delete from tidemark.code where object = 'pass_summary';
