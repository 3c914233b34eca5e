create or replace function tidemark.command_behind(service text, key text)
returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    loop
        -- A session may be about to release this row, and would not see what this transaction parks behind it: that
        -- would wait for ever. With this lock the row is gone before, or is released after this transaction, and its
        -- release sees what was parked.
        perform from tidemark.command_parked p
        where p.service = command_behind.service and p.key = command_behind.key
        order by p.position desc limit 1 for key share;
        if found then
            return true;
        end if;
        -- One that was given up was the last, and others are there.
        exit when not exists (select from tidemark.command_parked p
                              where p.service = command_behind.service and p.key = command_behind.key);
    end loop;
    return false;
end
$$;
comment on function tidemark.command_behind(text, text) is
    'Whether commands of this ordering key are parked. True: the last of them is released after this transaction, and '
    'then makes the next one due.';
