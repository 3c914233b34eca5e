-- Where a backslash in a plain literal was none (standard_conforming_strings = off), migration 0040 made patterns that find nothing.

set local role tidemark_owner;

alter table tidemark.forbidden_key drop column pattern;
alter table tidemark.forbidden_key add column pattern text not null generated always as (
    E'\\\\*"(?:[]!#-/:-@[^_`{-~[:space:]]|\\\\+[bfnrt]?)*'
    || pg_catalog.regexp_replace(pg_catalog.replace(key, '_', ''), '(.)(?=.)', E'\\1(?:[]!#-/:-@[^_`{-~[:space:]]|\\\\\\\\+[bfnrt]?)*', 'g')
    || E'(?:[]!#-/:-@[^_`{-~[:space:]]|\\\\+[bfnrt]?)*\\\\*"[[:space:]]*:') stored;
comment on column tidemark.forbidden_key.pattern is 'Regular expression that finds the key in the text of a JSON document, as tidemark.plain_text has it.';
