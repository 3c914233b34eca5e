-- Inbound routes of functions and of triggers that the application has already.

set local role tidemark_owner;

alter table tidemark.inbound_route
    drop constraint source_object_kind_is_table,
    drop constraint sql_event_is_known,
    drop constraint one_route_for_an_operation,
    drop constraint truncate_has_no_columns,
    add constraint source_object_kind_is_known check (source_object_kind in ('table', 'function', 'trigger')),
    add constraint sql_event_is_known check (
        sql_event in ('insert', 'update', 'delete', 'truncate') and source_object_kind <> 'function'
        or sql_event = 'call' and source_object_kind = 'function'),
    add constraint one_route_for_an_operation unique (source_schema, source_table, sql_event, source_object_kind),
    add constraint truncate_has_no_columns check (
        sql_event <> 'truncate' or source_object_kind <> 'table' or payload_columns = '{}'),
    -- Who calls has an idempotency key to give; of a row Tidemark knows the primary key.
    add constraint policy_transaction_is_of_tables check (source_object_kind = 'table' or idempotency_policy = 'change');
comment on column tidemark.inbound_route.source_object_kind is 'What says that something happened. table (default): a trigger of Tidemark''s, which tidemark.capture_attach puts on the table. function: a function of the application, which calls tidemark.inbound_emit. trigger: a trigger of the application on the table, whose function calls tidemark.inbound_emit. Source: S1.';
comment on column tidemark.inbound_route.source_schema is 'Schema of the table or function, as the catalog spells it.';
comment on column tidemark.inbound_route.source_table is 'The table, or the function, as the catalog spells it.';
comment on column tidemark.inbound_route.sql_event is 'insert, update, delete or truncate; of a function call.';
comment on column tidemark.inbound_route.enabled is 'False (default): changes and calls leave nothing. One update; the trigger may stay.';
comment on column tidemark.inbound_route.dry_run is 'True (default): a change or call leaves a row in tidemark.captured, and no event.';
comment on column tidemark.inbound_route.idempotency_policy is 'change (default): each change of a row, each call is an event. transaction: the first change of a row in a transaction is, later ones in it are not; rows without a primary key as change. Of tables only.';
comment on column tidemark.inbound_route.payload_columns is 'The contract: columns whose values the payload shows; of a function or trigger, fields of its payload that the event keeps. Default none.';
