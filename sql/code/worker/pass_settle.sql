-- Not a security definer, like tidemark.deliver.
create or replace function tidemark.pass_settle(
    worker text,
    epoch bigint,
    batch tidemark.batch,
    evidence tidemark.evidence[],
    results tidemark.result[],
    settle_no bigint,
    shard integer default 0)
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    refusal text;
    live integer[];
    delivered record;
    summary jsonb;
    gate text;
begin
    evidence := coalesce(pass_settle.evidence, '{}');
    results := coalesce(pass_settle.results, '{}');
    live := tidemark.live_inside(pass_settle.worker, evidence, pass_settle.shard);
    -- A worker that stops settles without a batch, to record deliveries that ended meanwhile: it must begin no new
    -- one.
    if cardinality(live) > 0 and not (batch is null) then
        perform tidemark.lease_check(pass_settle.worker, pass_settle.epoch, 'outbox', pass_settle.shard);
        refusal := tidemark.settle_refusal(pass_settle.worker, batch.watermark, settle_no, pass_settle.shard);
        if refusal is not null then
            return jsonb_build_object('status', refusal);
        end if;
        begin
            delivered :=
                tidemark.deliver_inside(pass_settle.worker, evidence, interval '800 milliseconds', batch.closed,
                                        pass_settle.shard);
            summary := tidemark.settle(pass_settle.worker, pass_settle.epoch, batch, delivered.settled,
                                       pass_settle.results || delivered.results, delivered.fallbacks, settle_no,
                                       pass_settle.shard);

            -- The last look at the switches comes after all that can wait, as for the locks of the settle.
            gate := tidemark.closed_switch(pass_settle.worker, live, batch.closed);
            if gate is not null then
                raise exception using errcode = 'TM009', message = gate;
            end if;
            return summary;
        exception when sqlstate 'TM009' then
            -- Record the outside deliveries from before the gate closed; leave the rest pending.
            evidence := array(
                select case when e.outcome = 'pending' and e.reason is distinct from 'domain_closed'
                           then row(e.route_id, e.outcome, 'gate_closed', null, e.events, e.seqs)::tidemark.evidence
                            else e end
                from unnest(pass_settle.evidence) e);
        end;
    end if;

    return tidemark.settle(pass_settle.worker, pass_settle.epoch, batch, pass_settle.evidence, pass_settle.results,
                           settle_no => pass_settle.settle_no, shard => pass_settle.shard);
end
$$;
comment on function tidemark.pass_settle(text, bigint, tidemark.batch, tidemark.evidence[], tidemark.result[],
                                         bigint, integer) is
    'Ends a pass whose deliveries went outside the database: delivers to targets inside, in this transaction, and '
    'records the outcome of every delivery (tidemark.settle). If a gate closed meanwhile, deliveries inside stay '
    'pending. settle_no is that of the settle before plus one: a repeated one changes nothing (status settled '
    'already). Returns the summary of the pass; null without a batch. Raises TM011 where the lease has another epoch '
    'by now.';
grant execute on function tidemark.pass_settle(text, bigint, tidemark.batch, tidemark.evidence[], tidemark.result[],
                                               bigint, integer) to tidemark_executor;
