-- Who did it is asked of tidemark.login, which PostgreSQL's maintenance cannot mislead.

set local role tidemark_owner;

-- It has a new parameter.
drop function if exists tidemark.domain_check;
alter table tidemark.audit alter column actor drop default;
alter table tidemark.pack alter column installed_by drop default;
