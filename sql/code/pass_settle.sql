-- Not a security definer, as tidemark.deliver is not.
create or replace function tidemark.pass_settle(
    worker text,
    epoch bigint,
    batch tidemark.batch,
    evidence tidemark.evidence[],
    results tidemark.result[])
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    live integer[];
    fallbacks integer := 0;
    delivered record;
    gate text;
    summary jsonb;
begin
    evidence := coalesce(pass_settle.evidence, '{}');
    results := coalesce(pass_settle.results, '{}');
    live := tidemark.live_inside(pass_settle.worker, evidence);
    if cardinality(live) > 0 then
        perform tidemark.lease_check(pass_settle.worker, pass_settle.epoch);
        begin
            delivered := tidemark.deliver_inside(pass_settle.worker, evidence);
            gate := tidemark.closed_switch(pass_settle.worker, live);
            if gate is not null then
                raise exception using errcode = 'TM009', message = gate;
            end if;
            evidence := delivered.settled;
            results := pass_settle.results || delivered.results;
            fallbacks := delivered.fallbacks;
        exception when sqlstate 'TM009' then
            -- What went outside before the gate closed has to be recorded all the same; the rest is left over.
            evidence := array(
                select case e.outcome when 'pending'
                           then row(e.route_id, e.outcome, 'gate_closed', null, e.events, e.seqs)::tidemark.evidence else e end
                from unnest(pass_settle.evidence) e);
        end;
    end if;

    if not (batch is null) then
        summary := tidemark.pass_summary(pass_settle.worker, batch, pass_settle.evidence || array(
            select row(r.route_id, r.outcome, r.reason, null, (select sum(upper(s) - lower(s)) from unnest(r.seqs) s), r.seqs)::tidemark.evidence
            from unnest(pass_settle.results) r where r.fresh), fallbacks);
    end if;
    perform tidemark.settle(pass_settle.worker, pass_settle.epoch, batch, pass_settle.evidence, pass_settle.results, summary);
    return summary;
end
$$;
comment on function tidemark.pass_settle(text, bigint, tidemark.batch, tidemark.evidence[], tidemark.result[]) is
'The end of a pass whose deliveries went outside the database: delivers what goes inside, in this transaction, and writes what became of everything (tidemark.settle). Where a gate closed meanwhile, what goes inside is left pending. Returns the summary of the pass; null without a batch. Raises TM011 where the epoch is not the lease''s any more.';
revoke all on function tidemark.pass_settle(text, bigint, tidemark.batch, tidemark.evidence[], tidemark.result[]) from public;
grant execute on function tidemark.pass_settle(text, bigint, tidemark.batch, tidemark.evidence[], tidemark.result[]) to tidemark_executor;
