-- An SQL target may take a batch of events.
drop function if exists tidemark.sql_target;
drop function if exists tidemark.delivery_statement;
drop function if exists tidemark.deliver;
