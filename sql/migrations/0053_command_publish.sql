-- It takes arrays of commands and payloads.
drop function if exists tidemark.command_publish;
