create or replace trigger finding_closed
after update of closed_at on tidemark.finding
for each row when (old.closed_at is null and new.closed_at is not null) execute function tidemark.finding_event();
comment on trigger finding_closed on tidemark.finding is 'Emits system/finding_closed, where that type is enabled.';
