-- public
create or replace function tidemark.capture_guard("on" boolean, reason text)
returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    if not (select r.rolsuper from pg_roles r where r.rolname = current_user) then
        raise exception using errcode = '42501',
            message = 'the guard is an event trigger, which only a superuser may make or drop',
            hint = format('As a superuser: select tidemark.capture_guard(%L, ''why'');', capture_guard."on");
    end if;
    perform tidemark.capture_record('capture_guard', null, capture_guard.reason, array[capture_guard."on"::text]);
    drop event trigger if exists tidemark_capture_guard;
    if capture_guard."on" then
        create event trigger tidemark_capture_guard on ddl_command_end when tag in ('CREATE TRIGGER')
            execute function tidemark.capture_guard_check();
    end if;
    return capture_guard."on";
end
$$;
comment on function tidemark.capture_guard(boolean, text) is
    'Creates (true) or drops (false) the event trigger tidemark_capture_guard, which refuses triggers that call '
    'functions of Tidemark on tables without an inbound route. Raises 42501 where the caller is not a superuser, TM005 '
    'without a reason.';
grant execute on function tidemark.capture_guard(boolean, text) to tidemark_admin;
