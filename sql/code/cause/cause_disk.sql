create or replace function tidemark.cause_disk()
returns setof tidemark.trouble
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
    select 'disk_filling', current_database()::text,
           case when f.bytes is null then 'unknown'
                when f.used >= 0.95 or f.hour > 0 and f.hours < 1 and f.used >= 0.8 then 'bad' else 'warn' end,
           null::timestamptz,
           case when f.bytes is null then 'how large the database is, is not shown to tidemark_owner' else
           format('the database has %s of the %s of the setting disk.size, of them %s in the log with its evidence; %s',
                  pg_size_pretty(f.bytes), pg_size_pretty(f.size), pg_size_pretty(f.log_bytes),
                  case when f.hour is null then 'how fast it grows is known some minutes after maintain has begun to '
                                                'measure it'
                       when f.hour <= 0 then 'it does not grow'
                       else format('it grows by %s an hour, and is full in %s', pg_size_pretty(f.hour),
                                   case when f.hours < 0 then 'no time' when f.hours < 1
                                            then format('%s minutes', round(f.hours * 60))
                                        else format('%s hours', round(f.hours)) end) end) end,
           null::bigint, '{}'::text[],
           case when f.bytes is null
                    then array[format('grant connect on database %I to tidemark_owner;', current_database()),
                               'select * from tidemark.maintain();']
                when f.retention > interval '1 day' and f.log_bytes > f.bytes / 4 then array[
               format('select tidemark.setting_set(''outbox.retention'', %L, ''the disk fills'');', f.retention / 2),
               'select * from tidemark.maintain();']
                else '{select * from tidemark.maintain();}' end,
           case when f.bytes is null then '{}'
                when f.retention > interval '1 day' and f.log_bytes > f.bytes / 4 then array[
               format('tidemark setting set outbox.retention %s --reason ''the disk fills''',
                      tidemark.shell_word((f.retention / 2)::text)),
               'tidemark maintain']
                else '{tidemark maintain}' end
    from (
        select g.*, g.bytes / g.size as used, (g.size - g.bytes) / nullif(g.hour, 0) as hours
        from (
            select s.bytes, s.log_bytes, d.size, tidemark.interval_setting('outbox.retention', '30 days') as retention,
                   case when s.at > s.older_at + interval '5 minutes'
                        then round((s.bytes - s.older_bytes) * 3600 / extract(epoch from s.at - s.older_at)) end as hour
            from tidemark.storage_sample s
            cross join lateral (
                select tidemark.disk_bytes(x.value) as size from tidemark.setting x where x.key = 'disk.size') d
            where d.size > 0) g) f
    -- A load into a disk that stays half empty is no alarm.
    where f.bytes is null or f.used >= 0.85 or f.used >= 0.5 and f.hour > 0 and f.hours < 24
$$;
comment on function tidemark.cause_disk() is
    'The part of tidemark.cause about the size of the database, as tidemark.maintain measured it last: disk_filling, '
    'from 85 % of the setting disk.size on, or from half of it on if it is full within a day (bad: from 95 % on, or '
    'from 80 % on if it is full within an hour; unknown: the owner may not see it).';
grant execute on function tidemark.cause_disk() to tidemark_reader, tidemark_executor;
