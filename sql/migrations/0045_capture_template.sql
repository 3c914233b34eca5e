-- The functions of captured tables are made from tidemark.capture_template. The trigger function for any table goes: no
-- trigger of capture_attach calls it.
do $$
declare
    by_hand constant text := (
        select string_agg(format('%I on %s', t.tgname, t.tgrelid::regclass), ', ')
        from pg_trigger t where t.tgfoid = to_regproc('tidemark.capture'));
begin
    if by_hand is not null then
        raise exception using errcode = 'TM005', message = format('triggers call tidemark.capture, which goes: %s', by_hand),
            hint = 'Detach the table and attach it again: tidemark capture detach, tidemark capture attach.';
    end if;
end
$$;
drop function if exists tidemark.capture;
delete from tidemark.code where object = 'capture';
