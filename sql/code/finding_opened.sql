create or replace trigger finding_opened
after insert on tidemark.finding
for each row when (new.closed_at is null) execute function tidemark.finding_event();
comment on trigger finding_opened on tidemark.finding is 'Emits system/finding_opened, where that type is enabled. A finding that is seen again is an update.';
