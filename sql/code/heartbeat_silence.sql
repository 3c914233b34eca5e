create or replace trigger heartbeat_silence
after insert on tidemark.heartbeat
for each row execute function tidemark.silence_add();
comment on trigger heartbeat_silence on tidemark.heartbeat is 'Gives a new executor the row of tidemark.silence that tidemark.stale_check locks.';
