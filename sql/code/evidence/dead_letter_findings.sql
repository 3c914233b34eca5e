create or replace function tidemark.dead_letter_findings(worker text, worker_id integer, subject text, dead bigint)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    bound constant bigint := coalesce((
        select s.value::bigint from tidemark.setting s
        where s.key = 'dead_letter.overflow' and s.value ~ '^[0-9]{1,10}$'), 1000);
    open constant bigint := (
        select count(*) from (
            select from tidemark.dead_letter l
            where l.worker_id = dead_letter_findings.worker_id and l.resolved_at is null
            -- In the order of the index of open ones: those that are resolved stay.
            order by l.error_code, l.source, l.shard limit bound + 1) l);
begin
    perform tidemark.finding_open('cursor_dlq', subject, 'warning',
        format('%s more dead-lettered; see tidemark.dead_letter', dead));
    if open > bound then
        perform tidemark.finding_open('dlq_overflow', worker, 'high',
            format('more than %s dead letters are open', bound));
    end if;
end
$$;
comment on function tidemark.dead_letter_findings(text, integer, text, bigint) is
    'Opens the finding cursor_dlq on subject: the worker that reads the log, or worker/source/shard for the cursor of '
    'a table. Opens dlq_overflow on the worker where it has more open dead letters than the setting '
    'dead_letter.overflow (default 1000). tidemark.maintain closes both.';
