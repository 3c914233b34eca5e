create or replace view tidemark.capture_attached as
select t.tgrelid as relation, n.nspname::text as schema_name, c.relname::text as table_name,
       t.tgname::text as trigger_name, p.proname::text as function_name,
       -- pg_trigger.h: row 1, before 2, insert 4, delete 8, update 16, truncate 32, instead 64.
       case t.tgtype & 60 when 4 then 'insert' when 8 then 'delete' when 16 then 'update'
            when 32 then 'truncate' end as operation,
       t.tgenabled::text as enabled,
       t.tgtype & 67 = 0 and t.tgqual is null and t.tgattr::text = ''
       and t.tgnewtable is not distinct from case when t.tgtype & 20 > 0 then 'tidemark_new' end
       and t.tgoldtable is not distinct from case when t.tgtype & 24 > 0 then 'tidemark_old' end
       and t.tgtype & 60 in (4, 8, 16, 32) as as_attached
from pg_catalog.pg_trigger t
join pg_catalog.pg_class c on c.oid = t.tgrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
join pg_catalog.pg_proc p on p.oid = t.tgfoid
where not t.tgisinternal and p.pronamespace = 'tidemark'::regnamespace and p.proname ~ '^capture_[0-9]+$';
comment on view tidemark.capture_attached is
    'Triggers of tables that call a function of tidemark.capture_make: the function, the operation, '
    'pg_trigger.tgenabled, and whether the trigger is as tidemark.capture_attach makes it.';
grant select on tidemark.capture_attached to tidemark_reader, tidemark_executor;
