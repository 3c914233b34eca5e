create or replace function tidemark.settle_refusal(worker text, watermark bigint, settle_no bigint, shard integer)
returns text
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    at_ tidemark.worker_cursor;
begin
    select c.* into at_ from tidemark.worker_cursor c
    where c.worker = settle_refusal.worker and c.source = 'outbox' and c.shard = settle_refusal.shard;
    if at_.settles >= settle_no then
        -- The caller repeated this settle, since its answer was lost or late. The network may delay a repetition for
        -- any time, so check before any delivery.
        return 'settled already';
    elsif settle_no > at_.settles + 1 then
        raise exception using errcode = 'TM011',
            message = format('worker %s: its settle before number %s is not there: the server has lost it',
                             settle_refusal.worker, settle_no),
            hint = 'Nothing was written. The next owner of the lease reads these events.';
    elsif settle_refusal.watermark < at_.watermark_id::bigint then
        -- Only a rewind moves a cursor back, and a rewind ends the epoch.
        perform tidemark.worker_finding(
            settle_refusal.worker, 'cursor_watermark_regression',
            tidemark.cursor_name(settle_refusal.worker, settle_refusal.shard),
            format('a batch that ends at %s cannot be settled behind the watermark %s: the cursor was held, and '
                   'nothing was recorded',
                   settle_refusal.watermark, at_.watermark_id));
        return 'held';
    elsif settle_refusal.watermark is not null and tidemark.cursor_edited(at_) then
        perform tidemark.worker_finding(
            settle_refusal.worker, 'cursor_watermark_regression',
            tidemark.cursor_name(settle_refusal.worker, settle_refusal.shard),
            format('the watermark is %s, and was left at %s: it was edited by hand while a page was under way, and '
                   'nothing of the page was recorded', at_.watermark_id, coalesce(at_.rewound_to::text,
                                                                                  at_.decided_through)));
        return 'held';
    end if;
    return null;
end
$$;
comment on function tidemark.settle_refusal(text, bigint, bigint, integer) is
    'Why a batch that ends at the watermark must not be settled with this number: settled already (it was, or its '
    'number was given up), or held (the cursor is further, and a finding tells). Null: it may be settled. The caller '
    'holds the lock on the lease. watermark is null for a settle without a batch. Raises TM011 where the settle before '
    'is missing, as on a server that was put back.';
grant execute on function tidemark.settle_refusal(text, bigint, bigint, integer) to tidemark_executor;
