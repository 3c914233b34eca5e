create or replace view tidemark.letter_detail as
select l.id, tidemark.error_shown(l.error_code, l.error_detail, current_user) collate "default" as error_detail
from tidemark.dead_letter l;
comment on view tidemark.letter_detail is
    'The error of each dead letter, as the role may see it (tidemark.error_shown).';
grant select on tidemark.letter_detail to tidemark_reader, tidemark_executor;
