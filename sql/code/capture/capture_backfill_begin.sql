-- public
-- No transaction writes the table at the moment in which the backfill begins. So each later change of a row has an
-- event with a number above that of the beginning, and each row whose last writer is older has none.
create or replace function tidemark.capture_backfill_begin(relation regclass, type text, reason text)
returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp
-- It waits for writers of the table, and every later writer waits for it.
set lock_timeout = '3s'
as $$
declare
    name text;
begin
    if current_setting('transaction_isolation') not like 'read %' then
        raise exception using errcode = 'TM006', message = 'a backfill needs read committed',
            hint = 'Begin it in a transaction of its own.';
    end if;
    select format('%I.%I', n.nspname, c.relname) into name
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.oid = capture_backfill_begin.relation and c.relkind in ('r', 'p') and pg_has_role(c.relowner, 'usage');
    if name is null then
        raise exception using errcode = '42501',
            message = format('must be owner of table %s', capture_backfill_begin.relation),
            hint = 'The rows are locked while they become events.';
    end if;
    execute format('lock table %s in share mode', name);
    return tidemark.capture_backfill_add(capture_backfill_begin.relation, name, capture_backfill_begin.type,
                                         capture_backfill_begin.reason);
end
$$;
comment on function tidemark.capture_backfill_begin(regclass, text, text) is
    'Begins to make the rows of a captured table of the caller''s events of this type, and returns its number for '
    'tidemark.capture_backfill_step. The inserts and updates of the table must be captured, and not in dry run; the '
    'columns of its primary key must have built-in types, and not domains. Gives up after waiting 3 s for the table '
    '(55P03): call it again. Raises TM001, TM005, TM006, 42501 for another owner''s table.';
grant execute on function tidemark.capture_backfill_begin(regclass, text, text) to tidemark_admin;
