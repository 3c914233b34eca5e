create or replace function tidemark.capture_reconciled(checkpoint tidemark.capture_checkpoint, gap text, clear boolean)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    delete from tidemark.capture_checkpoint c where c.relation = checkpoint.relation;
    insert into tidemark.capture_checkpoint select checkpoint.*;
    if gap is not null then
        perform tidemark.finding_open('capture_gap', checkpoint.relation::regclass::text, 'high', gap);
    elsif clear then
        perform tidemark.finding_close('capture_gap', checkpoint.relation::regclass::text);
    end if;
end
$$;
comment on function tidemark.capture_reconciled(tidemark.capture_checkpoint, text, boolean) is 'Keeps where a tidemark.capture_reconcile ended, and opens the finding capture_gap where gap says what is missing; clear: closes it.';
revoke all on function tidemark.capture_reconciled(tidemark.capture_checkpoint, text, boolean) from public;
grant execute on function tidemark.capture_reconciled(tidemark.capture_checkpoint, text, boolean) to tidemark_admin;
