-- Rights. The statements from here on run as the installing role.

create or replace trigger ruleset_audit
after insert or update or delete on governance.ruleset
for each row execute function tidemark.audit_change('ruleset_version');
comment on trigger ruleset_audit on governance.ruleset is 'Every change goes to tidemark.audit.';
create or replace trigger watched_audit
after insert or update or delete on governance.watched
for each row execute function tidemark.audit_change('source');
comment on trigger watched_audit on governance.watched is 'Every change goes to tidemark.audit.';
create or replace trigger old_outbox_audit
after insert or update or delete on governance.old_outbox
for each row execute function tidemark.audit_change('source');
comment on trigger old_outbox_audit on governance.old_outbox is 'Every change goes to tidemark.audit.';

revoke all on all functions in schema governance from public;
grant execute on all functions in schema governance to tidemark_executor;
revoke execute on function governance.audit_start(interval, integer), governance.ruleset_set(text, jsonb, text),
    governance.watch(regclass, text, jsonb, jsonb, text), governance.unwatch(text, text),
    governance.bring_in(regclass, jsonb, jsonb, jsonb, text) from tidemark_executor;
grant execute on function governance.audit_start(interval, integer), governance.ruleset_set(text, jsonb, text),
    governance.watch(regclass, text, jsonb, jsonb, text), governance.unwatch(text, text),
    governance.bring_in(regclass, jsonb, jsonb, jsonb, text) to tidemark_admin;
grant execute on function governance.find(text, text) to tidemark_reader;
grant update on governance.turn to tidemark_executor;
grant select on governance.ruleset, governance.watched, governance.old_outbox to tidemark_executor, tidemark_reader;
grant select, insert, update, delete on governance.watched, governance.old_outbox to tidemark_admin;
-- Not created_at and created_by: who added a ruleset is no claim of the one who adds it.
revoke insert, update on governance.ruleset from tidemark_admin;
grant select, insert (ruleset_version), update (is_current, stale_after, input_rule, verdict_rule, description)
    on governance.ruleset to tidemark_admin;
grant select, insert on governance.candidate to tidemark_executor;
grant select, insert, update on governance.gated, governance.verdict, governance.tally, governance.snapshot
    to tidemark_executor;
grant select, insert, delete on governance.mark, governance.audit_step to tidemark_executor;
grant update on governance.audit_step to tidemark_admin;
grant execute on function governance.rows_estimated(text, text), governance.stale_count(), governance.worker_names()
    to tidemark_reader;
grant select on governance.summary, governance.progress, governance.metrics, governance.snapshot
    to tidemark_reader, tidemark_executor;

select set_config('role', current_setting('governance.installer'), true);
