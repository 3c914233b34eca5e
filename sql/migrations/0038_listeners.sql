-- Programs of others that listen for events are woken, where an operator wants it.

set local role tidemark_owner;

drop function if exists tidemark.wake;
insert into tidemark.setting (key, value, description) values
    ('notify.listeners_enabled', 'false', 'Gate: every emit and capture notifies tidemark_wake_<domain>, for programs of others that listen. Commits that notify are made one after the other, and cannot be prepared (two-phase commit).')
on conflict do nothing;
