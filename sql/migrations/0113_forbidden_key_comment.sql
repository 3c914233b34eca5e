-- The table holds for payloads and heartbeats. Signals and logs carry no payload.

set local role tidemark_owner;

comment on table tidemark.forbidden_key is 'Keys refused in payloads of metadata-only domains and in heartbeats: at any depth, in any letter case, with or without separators, in any form of Unicode''s that reads the same, also inside encoded JSON. Signals and the logs of daemons carry no payload; in their logs daemons also hide what would stand under one of the keys that are here from the start. Source: S4 last_beat_payload CHECK.';
