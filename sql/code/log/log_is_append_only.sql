create or replace function tidemark.log_is_append_only()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    -- tidemark.events_erase: all that stays is when it was done.
    if tg_op = 'UPDATE' and to_jsonb(new) - 'payload' = to_jsonb(old) - 'payload'
        and new.payload - 'erased' = '{}' and new.payload ? 'erased' then
        return new;
    end if;
    raise exception using errcode = 'TM010',
        message = format('%s on %I.%I refused: the log is append-only', lower(tg_op), tg_table_schema, tg_table_name),
        hint = 'Events leave by retention: select * from tidemark.maintain();';
end
$$;
comment on function tidemark.log_is_append_only() is
    'Trigger: raises TM010. Cursors would silently miss an update, a delete or a truncate. Only a payload may go '
    '(tidemark.events_erase).';

create or replace trigger outbox_append_only
before update or delete on tidemark.outbox
for each row execute function tidemark.log_is_append_only();
comment on trigger outbox_append_only on tidemark.outbox is
    'Rows of the log never change, but for a payload that is erased. The trigger is row-level, so that every partition '
    'inherits it.';

create or replace trigger outbox_no_truncate
before truncate on tidemark.outbox
for each statement execute function tidemark.log_is_append_only();
comment on trigger outbox_no_truncate on tidemark.outbox is 'Refuses to truncate the log.';
