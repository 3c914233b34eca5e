-- Not a security definer, as tidemark.deliver is not.
create or replace function tidemark.pass_settle(
    worker text,
    epoch bigint,
    batch tidemark.batch,
    evidence tidemark.evidence[],
    results tidemark.result[],
    settle_no bigint)
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    at_ tidemark.worker_cursor;
    live integer[];
    fallbacks integer := 0;
    delivered record;
    gate text;
    summary jsonb;
begin
    perform tidemark.lease_check(pass_settle.worker, pass_settle.epoch);
    select c.* into at_ from tidemark.worker_cursor c
    where c.worker = pass_settle.worker and c.source = 'outbox' and c.shard = 0;
    if at_.settles >= settle_no then
        -- It was repeated, since its answer was lost or late, and this is the other one. The network may hold it back
        -- for any time: before anything is delivered again.
        return '{"status": "settled already"}';
    elsif batch.watermark < at_.watermark_id::bigint then
        -- Only a rewind moves a cursor back, and a rewind ends the epoch.
        perform tidemark.worker_finding(pass_settle.worker, 'cursor_watermark_regression', pass_settle.worker,
            format('a batch that ends at %s was to be settled behind the watermark %s: the cursor was held, nothing of '
                   'it was recorded',
                   batch.watermark, at_.watermark_id));
        return '{"status": "held"}';
    end if;
    evidence := coalesce(pass_settle.evidence, '{}');
    results := coalesce(pass_settle.results, '{}');
    live := tidemark.live_inside(pass_settle.worker, evidence);
    -- Without a batch a worker puts down what ended beside it, as it stops: nothing new is begun.
    if cardinality(live) > 0 and not (batch is null) then
        begin
            delivered :=
                tidemark.deliver_inside(pass_settle.worker, evidence, interval '800 milliseconds', batch.closed);
            gate := tidemark.closed_switch(pass_settle.worker, live, batch.closed);
            if gate is not null then
                raise exception using errcode = 'TM009', message = gate;
            end if;
            evidence := delivered.settled;
            results := pass_settle.results || delivered.results;
            fallbacks := delivered.fallbacks;
        exception when sqlstate 'TM009' then
            -- What went outside before the gate closed has to be recorded all the same; the rest is left over.
            evidence := array(
                select case when e.outcome = 'pending' and e.reason is distinct from 'domain_closed'
                           then row(e.route_id, e.outcome, 'gate_closed', null, e.events, e.seqs)::tidemark.evidence
                            else e end
                from unnest(pass_settle.evidence) e);
        end;
    end if;

    if not (batch is null) then
        summary :=
            tidemark.pass_summary(pass_settle.worker, batch, pass_settle.evidence, pass_settle.results, fallbacks);
    end if;
    perform tidemark.settle(pass_settle.worker, pass_settle.epoch, batch, pass_settle.evidence, pass_settle.results,
                            summary, settle_no);
    return summary;
end
$$;
comment on function tidemark.pass_settle(text, bigint, tidemark.batch, tidemark.evidence[], tidemark.result[],
                                         bigint) is
    'The end of a pass whose deliveries went outside the database: delivers what goes inside, in this transaction, '
    'and writes what became of everything (tidemark.settle). Where a gate closed meanwhile, what goes inside is left '
    'pending. settle_no is one more than that of the settle before: one that comes twice does nothing the second time '
    '(status settled already). Returns the summary of the pass; null without a batch. Raises TM011 where the epoch is '
    'not the lease''s any more.';
grant execute on function tidemark.pass_settle(text, bigint, tidemark.batch, tidemark.evidence[], tidemark.result[],
                                               bigint) to tidemark_executor;
