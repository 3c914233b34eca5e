create or replace function tidemark.capture_record(action text, relation regclass, reason text, statements text[])
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if coalesce(btrim(capture_record.reason), '') = '' then
        raise exception using errcode = 'TM005',
            message = format('%s needs a reason', replace(capture_record.action, '_', ' ')),
            hint = 'tidemark.audit records it, with the role and the time.';
    elsif capture_record.action not in ('capture_attach', 'capture_detach', 'capture_guard') then
        raise exception using errcode = 'TM005',
            message = format('capture has no action "%s"', capture_record.action);
    end if;
    insert into tidemark.audit (action, object, reason, after)
    values (capture_record.action, coalesce(capture_record.relation::text, 'database'), capture_record.reason,
            to_jsonb(capture_record.statements));
end
$$;
comment on function tidemark.capture_record(text, regclass, text, text[]) is
    'Records an action on another owner''s table, with its reason: capture_attach, capture_detach, capture_guard. '
    'Raises TM005 without a reason.';
grant execute on function tidemark.capture_record(text, regclass, text, text[]) to tidemark_admin;
