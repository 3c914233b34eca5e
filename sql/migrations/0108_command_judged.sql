-- The daemon says by which schema it has judged a command over HTTP.

set local role tidemark_owner;

drop function if exists tidemark.command_ingress;
drop function if exists tidemark.command_ask;
