create or replace function tidemark.command_body(command tidemark.command)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    target record;
    token text;
    code text := '';
    bare text := '';
    name text;
    type text;
    call text;
begin
    if command.function is not null then
        select t.* into target from tidemark.command_target(command.function) t;
        select format('%I.%I($1%s)', n.nspname, p.proname, case target.takes when 2 then ', $2' else '' end) into call
        from pg_proc p join pg_namespace n on n.oid = p.pronamespace where p.oid = target.function;
        call := case when target.returns = 'void'::regtype then 'perform ' || call || ';'
                else 'result := ' || call || ';' end;
    else
        -- Literals, quoted names and comments stay as they are; :name outside them is a parameter.
        for token in
            select m[1] from regexp_matches(command.statement,
                E'(''(?:[^'']|'''')*''|"(?:[^"]|"")*"|--[^\\n]*|/[*].*?[*]/|[$]\\w*[$].*?[$]\\w*[$]|::|'
                ':[a-z_][a-z0-9_]*|.)', 'g') m
        loop
            if token ~ '^:[a-z_]' then
                name := substr(token, 2);
                type := command.parameters ->> name;
                if type is null then
                    raise exception using errcode = 'TM005',
                        message = format('command %s: parameter :%s of the statement has no type', command.name, name),
                        hint = 'Give it in parameters: {"name": "type"}.';
                end if;
                code := code || case when type in ('jsonb', 'json') then format('(($1 -> %L)::%s)', name, type)
                                else format('(($1 ->> %L)::%s)', name, type) end;
            else
                code := code || token;
                bare := bare || case when length(token) = 1 or token = '::' then token else ' ' end;
            end if;
        end loop;
        if strpos(rtrim(bare, E' \n\t;'), ';') > 0 then
            raise exception using errcode = 'TM005',
                message = format('command %s: the statement is more than one statement', command.name),
                hint = 'Make a function for several statements.';
        end if;
        code := rtrim(code, E' \n\t;');
        -- As part of a query it is one statement, whatever is in it.
        call := case when bare ~* E'^\\s*(select|values|with|table)\\M' or bare ~* E'\\mreturning\\M'
            then format(E'with statement as (%s\n) select to_json(s) into result from statement s;', code)
            else format(E'with statement as (%s\n) select null::json into result;', code) end;
    end if;
    -- A constraint that is deferred would be checked at the commit, with the rights of the session: it is checked here,
    -- with those of the service. Called without a payload, the function does only that.
    return format($body$#variable_conflict use_column
declare
    result json;
    again text;
begin
    -- By tidemark.command_settle.
    if $1 is null then
        set constraints all immediate;
        return null;
    end if;
    -- The command before it in this transaction has set all constraints immediate, or what it pleased.
    if current_setting('tidemark.again', true) = 'true' then
        set constraints all immediate;
        select 'set constraints ' || string_agg(distinct format('%%I.%%I', n.nspname, c.conname), ', ') || ' deferred'
        into again
        from pg_catalog.pg_constraint c join pg_catalog.pg_namespace n on n.oid = c.connamespace
        where c.condeferred and has_schema_privilege(n.oid, 'usage');
        if again is not null then
            execute again;
        end if;
    end if;
    %s
    set constraints all immediate;
    return result;
end$body$, call);
end
$$;
comment on function tidemark.command_body(tidemark.command) is
    'The body of the function that runs a command with the rights of its service. Raises TM005 for a parameter '
    'without a type, or several statements.';
