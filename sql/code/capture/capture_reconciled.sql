create or replace function tidemark.capture_reconciled(checkpoint tidemark.capture_checkpoint, gap tidemark.capture_gap)
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    delete from tidemark.capture_checkpoint c where c.relation = checkpoint.relation or c.name = checkpoint.name;
    insert into tidemark.capture_checkpoint select checkpoint.*;
    if gap.relation is not null then
        perform tidemark.capture_gap_open(gap);
    end if;
    return (select g.id from tidemark.capture_gap g where g.name = checkpoint.name and g.resolved_at is null);
end
$$;
comment on function tidemark.capture_reconciled(tidemark.capture_checkpoint, tidemark.capture_gap) is
    'Records the state at the end of a tidemark.capture_reconcile, and the missing changes (gap; null: none). Returns '
    'the number of the table''s open gap.';
grant execute on function tidemark.capture_reconciled(tidemark.capture_checkpoint, tidemark.capture_gap)
    to tidemark_admin;
