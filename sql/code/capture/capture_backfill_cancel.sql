-- public
create or replace function tidemark.capture_backfill_cancel(id bigint, reason text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    b tidemark.capture_backfill;
begin
    if coalesce(btrim(capture_backfill_cancel.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'cancelling a backfill needs a reason',
            hint = 'Say why: it is kept in tidemark.audit.';
    end if;
    update tidemark.capture_backfill f set cancelled_at = clock_timestamp()
    where f.id = capture_backfill_cancel.id and f.finished_at is null and f.cancelled_at is null
    returning f.* into b;
    if not found then
        raise exception using errcode = 'TM004', message = format('there is no backfill %s under way', id),
            hint = 'See: select * from tidemark.capture_backfill;';
    end if;
    delete from tidemark.capture_backfill_key k where k.backfill_id = b.id;
    insert into tidemark.audit (action, object, reason, after)
    values ('capture_backfill_cancel', b.name, capture_backfill_cancel.reason,
            jsonb_build_object('backfill', b.id, 'rows', b.rows, 'upto', b.upto));
end
$$;
comment on function tidemark.capture_backfill_cancel(bigint, text) is
    'Gives a backfill up where it is. Its events stay. Raises TM004, TM005.';
grant execute on function tidemark.capture_backfill_cancel(bigint, text) to tidemark_admin;
