-- Whether a cursor has work is asked of tidemark.source_next, by a pass and by the poll.
create type tidemark.activity as (
    oldest timestamptz,
    hidden boolean,
    blame text
);
comment on type tidemark.activity is 'What tidemark.oldest_transaction saw of the transactions under way: none of them has an earlier now() than oldest (null: the start of one is not shown); hidden: sessions cannot be seen, so oldest says nothing; blame: the session that keeps oldest back by more than 10 s.';

drop function if exists tidemark.look;
drop function if exists tidemark.look_state;
drop function if exists tidemark.look_rest;
drop function if exists tidemark.source_ahead;
drop function if exists tidemark.source_odd;
drop function if exists tidemark.source_horizon;
drop function if exists tidemark.oldest_transaction;
delete from tidemark.code where object in ('look', 'look_state', 'look_rest', 'source_ahead', 'source_odd');
