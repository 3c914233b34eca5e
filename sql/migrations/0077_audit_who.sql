-- What a login or a person changed, the latest first.

set local role tidemark_owner;

create index audit_actor on tidemark.audit (actor, id);
create index audit_person on tidemark.audit (person, id) where person is not null;
