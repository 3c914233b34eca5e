-- Each had one caller, source_set and capture_body, and is part of it now.
drop function if exists tidemark.source_types;
drop function if exists tidemark.capture_written;
delete from tidemark.code where object in ('source_types', 'capture_written');
