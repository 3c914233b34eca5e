-- A function of its own, since it pins the planner's settings: marks that others have left would be read each time.
create or replace function tidemark.command_marks_delete(places tid[])
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
    delete from tidemark.command_mark m where m.ctid = any (places);
end
$$;
comment on function tidemark.command_marks_delete(tid[]) is
    'Part of tidemark.command_settle: deletes the marks at these places.';
