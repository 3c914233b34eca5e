-- Not granted: only tidemark.claim calls it.
create or replace function tidemark.server_note(before text)
returns void
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
    insert into tidemark.audit (action, object, reason, before, after)
    select 'server_changed', 'installation',
           'a standby was promoted, or a backup restored: what was committed last before may be missing',
           jsonb_build_object('timeline', server_note.before), jsonb_build_object('timeline', tidemark.timeline())
    where not exists (
        select from tidemark.audit a
        where a.object = 'installation' and a.action = 'server_changed'
          and a.after ->> 'timeline' = tidemark.timeline())
$$;
comment on function tidemark.server_note(text) is
    'Records in tidemark.audit, once, that the server writes another timeline than the one before.';
