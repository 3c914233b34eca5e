-- A job that replays dead letters may have a rate.

set local role tidemark_owner;

alter table tidemark.letter_job add column rate double precision;
alter table tidemark.letter_job add constraint rate_is_above_0 check (rate > 0 and rate <= 1000000) not valid;
alter table tidemark.letter_job validate constraint rate_is_above_0;
comment on column tidemark.letter_job.rate is 'At most so many letters a second are tried again; null: as many as come.';

drop function if exists tidemark.letter_job_add;
