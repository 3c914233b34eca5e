create or replace function tidemark.audit_change()
returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    before constant jsonb := case when tg_op <> 'INSERT' then to_jsonb(old) end;
    after constant jsonb := case when tg_op <> 'DELETE' then to_jsonb(new) end;
begin
    if before is distinct from after then
        insert into tidemark.audit (action, object, reason, before, after)
        values (lower(tg_op), tg_table_name || ' ' || coalesce(coalesce(after, before) ->> tg_argv[0], ''),
                nullif(current_setting('tidemark.reason', true), ''), before, after);
    end if;
    return null;
end
$$;
comment on function tidemark.audit_change() is 'Trigger: records who changed a configuration row, what it was and is, and why (setting tidemark.reason). Its argument names the column that identifies the row.';
revoke all on function tidemark.audit_change() from public;
