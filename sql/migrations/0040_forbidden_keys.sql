-- A forbidden key is found with any separators between its letters, escapes of encoded JSON included.

set local role tidemark_owner;

alter table tidemark.forbidden_key drop column pattern;
alter table tidemark.forbidden_key add column pattern text not null generated always as (
    '\\*"(?:[]!#-/:-@[^_`{-~[:space:]]|\\+[bfnrt]?)*'
    || pg_catalog.regexp_replace(pg_catalog.replace(key, '_', ''), '(.)(?=.)', '\1(?:[]!#-/:-@[^_`{-~[:space:]]|\\\\+[bfnrt]?)*', 'g')
    || '(?:[]!#-/:-@[^_`{-~[:space:]]|\\+[bfnrt]?)*\\*"[[:space:]]*:') stored;
comment on column tidemark.forbidden_key.pattern is 'Regular expression that finds the key in the text of a JSON document, as tidemark.plain_text has it.';
comment on table tidemark.forbidden_key is 'Keys refused in payloads of metadata-only domains, in heartbeats, in signals and in logs: at any depth, in any letter case, with or without separators, in any form of Unicode''s that reads the same, also inside encoded JSON. Source: S4 last_beat_payload CHECK.';
