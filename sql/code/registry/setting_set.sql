-- public
create or replace function tidemark.setting_set(key text, value text, reason text default null)
returns setof tidemark.setting
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    needs text;
    fits boolean;
begin
    if not exists (select from tidemark.setting s where s.key = setting_set.key) then
        raise exception using errcode = 'TM004', message = format('there is no setting "%s"', setting_set.key),
            hint = 'Settings: tidemark setting list.';
    elsif setting_set.key like '%enabled' then
        raise exception using errcode = 'TM005', message = format('%s is a gate', setting_set.key),
            hint = format('select tidemark.gate_set(%L, true);', setting_set.key);
    end if;
    -- What is taken is what the functions that read the setting understand: these pass over any other text, or a bound.
    begin
        case
        when key like '%.retention' or key in ('lag.warn', 'lag.bad') then
            needs := 'an interval of up to 100 years, such as 30 days';
            fits := value::interval > interval '0' and value::interval <= interval '100 years';
        when key = 'disk.size' then
            needs := 'a size, such as 500 GB, or 0';
            fits := tidemark.disk_bytes(value) >= 0;
        when key = 'commands.rejected' then
            needs := 'result, dead_letter or both';
            fits := value in ('result', 'dead_letter', 'both');
        when key = 'commands.shared_topic' then
            needs := 'signed, claimed or refuse';
            fits := value in ('signed', 'claimed', 'refuse');
        when key = 'emit.payload_limit' then
            needs := '0, or bytes from 1000 to 999999999999999';
            fits := value ~ '^[0-9]{1,15}$' and (value::bigint = 0 or value::bigint >= 1000);
        when key = 'batch.max_bytes' then
            needs := 'bytes from 65536 to 999999999999';
            fits := value ~ '^[0-9]{1,12}$' and value::bigint >= 65536;
        when key = 'outbox.partition_events' then
            needs := 'a whole number from 1000 to 2147483647';
            fits := value ~ '^[0-9]{1,10}$' and value::integer >= 1000;
        when key like 'queue.%' then
            needs := 'a whole number of seconds';
            fits := value ~ '^[0-9]{1,30}$';
        else
            needs := 'a whole number from 1 to 2147483647';
            fits := value ~ '^[0-9]{1,10}$' and value::integer >= 1;
        end case;
    exception when data_exception then
        fits := false;
    end;
    if fits is not true then
        raise exception using errcode = 'TM005',
            message = format('setting %s is %s, and must be %s', key, coalesce(quote_literal(left(value, 100)), 'null'),
                             needs),
            hint = (select s.description from tidemark.setting s where s.key = setting_set.key);
    end if;
    if key = 'commands.shared_topic' and value = 'claimed' and coalesce(btrim(setting_set.reason), '') = ''
       and tidemark.armed() then
        raise exception using errcode = 'TM005',
            message = 'setting commands.shared_topic is not set to claimed in stage live without a reason',
            hint = 'Each login that may write to a shared topic can then ask as any producer. Give a reason, which is '
                   'kept in tidemark.audit.';
    end if;
    perform set_config('tidemark.reason', coalesce(setting_set.reason, ''), true);
    return query
    update tidemark.setting s set value = setting_set.value where s.key = setting_set.key returning s.*;
end
$$;
comment on function tidemark.setting_set(text, text, text) is
    'Changes a setting, such as outbox.retention, and returns its row. Takes effect with the next transaction that '
    'reads it. Raises TM004 for an unknown setting, TM005 for a value that does not suit it, for a gate '
    '(tidemark.gate_set), and for commands.shared_topic claimed in stage live without a reason.';
grant execute on function tidemark.setting_set(text, text, text) to tidemark_admin;
