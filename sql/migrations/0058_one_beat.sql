-- The beat that ends a pass over a table renews the lease, and some functions have become part of their only caller.

set local role tidemark_owner;

alter type tidemark.source_plan add attribute lease interval;
comment on column tidemark.source_plan.lease is 'How long the lease lasts after the pass; null: unchanged.';

drop function if exists tidemark.source_unread_take;
drop function if exists tidemark.cursor_sample_take;
drop function if exists tidemark.pending_at;
delete from tidemark.code where object in ('source_unread_take', 'cursor_sample_take', 'pending_at');
