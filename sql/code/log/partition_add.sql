create or replace function tidemark.partition_add(first_seq bigint, end_seq bigint)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    parent text;
begin
    foreach parent in array array['outbox', 'decision', 'attempt'] loop
        -- Create the table first and attach it then: that locks the parent in a mode that lets writers go on, while
        -- create table … partition of would block them.
        execute format('create table tidemark.%I (like tidemark.%I including defaults including constraints including '
                       'storage including compression)',
                       parent || '_p' || first_seq, parent);
        execute format('alter table tidemark.%I attach partition tidemark.%I for values from (%s) to (%s)',
                       parent, parent || '_p' || first_seq, first_seq, end_seq);
    end loop;
end
$$;
comment on function tidemark.partition_add(bigint, bigint) is
    'Adds the partition for the numbers from first_seq to before end_seq to the log and its evidence.';
