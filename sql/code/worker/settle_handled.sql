-- Not a security definer, like tidemark.pass_settle. What is due inside by now waits for the next page: no timer
-- would end it here.
create or replace function tidemark.settle_handled(
    worker text,
    epoch bigint,
    batch tidemark.batch,
    evidence tidemark.evidence[],
    results tidemark.result[],
    settle_no bigint,
    shard integer,
    routes integer[])
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    refusal text;
    gate text;
begin
    refusal := tidemark.settle(worker, epoch, batch, coalesce(evidence, '{}'), coalesce(results, '{}'),
                               settle_no => settle_no, shard => shard) ->> 'status';
    if refusal <> 'ran' then
        raise exception using errcode = 'TM012', message = refusal;
    end if;
    -- The last look at the switches comes after all that can wait, as for the locks of the settle.
    gate := tidemark.closed_switch(worker, routes, coalesce(batch.closed, '{}'));
    if gate is not null then
        raise exception using errcode = 'TM009', message = gate;
    end if;
end
$$;
comment on function tidemark.settle_handled(text, bigint, tidemark.batch, tidemark.evidence[], tidemark.result[],
                                            bigint, integer, integer[]) is
    'tidemark.settle in the transaction of handlers in a Go program, whose commit may follow in the same round '
    'trip: what forbids the commit is an error. Asks for the gates once more, at its end. '
    'Raises TM009 with what has closed since the page was read (tidemark.closed_switch), TM012 with the status of '
    'tidemark.settle where that recorded nothing, and TM011.';
grant execute on function tidemark.settle_handled(text, bigint, tidemark.batch, tidemark.evidence[], tidemark.result[],
                                                  bigint, integer, integer[]) to tidemark_executor;
