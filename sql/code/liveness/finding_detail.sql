-- public
create or replace view tidemark.finding_detail as
select f.id, f.detail || case when pg_catalog.pg_has_role(current_user, 'tidemark_executor', 'member')
                                   then coalesce(': ' || m.message, '') else '' end as detail
from tidemark.finding f
left join tidemark.finding_message m on m.finding = f.id;
comment on view tidemark.finding_detail is
    'The detail of each finding, as far as the role may see it. Members of tidemark_executor and tidemark_admin also '
    'see the error message, which may quote a payload.';
grant select on tidemark.finding_detail to tidemark_reader, tidemark_executor;
