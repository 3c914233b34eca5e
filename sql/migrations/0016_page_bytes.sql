-- A page is bounded by bytes, whatever its events weigh.

set local role tidemark_owner;

insert into tidemark.setting (key, value, description)
values ('batch.max_bytes', '16777216', 'Bytes of payload in a page of the log that is handed out for delivery outside the database; a single event may have more. At least 65536.');
