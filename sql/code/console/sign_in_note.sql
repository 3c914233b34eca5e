create or replace function tidemark.sign_in_note(person text, outcome text, detail text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if sign_in_note.outcome is null or sign_in_note.outcome not in ('signed in', 'refused', 'signed out') then
        raise exception using errcode = 'TM005', message = 'a sign-in is signed in, refused or signed out';
    end if;
    insert into tidemark.audit (action, object, reason, person)
    values ('sign_in_note', 'console ' || sign_in_note.outcome, left(sign_in_note.detail, 1024),
            left(sign_in_note.person, 256));
end
$$;
comment on function tidemark.sign_in_note(text, text, text) is
    'Records a sign-in to the console in tidemark.audit. Outcome: signed in, refused or signed out. The person is as '
    'given, so of a refused one it is what was claimed.';
grant execute on function tidemark.sign_in_note(text, text, text) to tidemark_admin;
