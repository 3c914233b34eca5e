create or replace function tidemark.deletion(what text, name text, reason text, problem text, advice text)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    if coalesce(btrim(reason), '') = '' then
        raise exception using errcode = 'TM005', message = format('deleting a %s needs a reason', what);
    elsif problem is not null then
        raise exception using errcode = 'TM005', message = format('%s %s cannot be deleted: %s', what, name, problem),
            hint = advice;
    end if;
    perform set_config('tidemark.reason', reason, true);
    perform tidemark.configuration_disown(case what when 'inbound route' then 'capture' else what end, name);
end
$$;
comment on function tidemark.deletion(text, text, text, text, text) is
    'Part of each deletion: sets the reason for the audit, and takes the thing from its file. Raises TM005 without a '
    'reason, or where there is a problem: what still uses the thing; advice is the hint.';
