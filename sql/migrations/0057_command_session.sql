-- The function that runs a command has one parameter less.

drop function if exists tidemark.command_execute;
