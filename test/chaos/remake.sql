-- What an operator does to tables that a worker reads. Each returns from where it has to read again.

-- Until the cursor has been rewound, the lowest place counts: an operator whose connection broke does it again.
create table app.remade (source text primary key, since_id bigint, since_ts timestamptz);

create function app.truncate_ledger() returns bigint language plpgsql set lock_timeout = '5s' as $$
begin
    lock table app.ledger in access exclusive mode;
    insert into app.bygone select 'ledger', l.id::text, l.write_id, l.poison from app.ledger l;
    truncate app.ledger restart identity;
    insert into app.remade values ('ledger', 0) on conflict (source) do update set since_id = 0;
    return 0;
end
$$;

-- The last rows that were read are deleted, and their numbers given out again.
create function app.set_back_ledger(by integer) returns bigint language plpgsql set lock_timeout = '5s' as $$
declare
    since bigint;
begin
    lock table app.ledger in access exclusive mode;
    since := (select c.watermark_id::bigint - by from tidemark.worker_cursor c where c.worker = 'tables' and c.source = 'ledger');
    if coalesce(since, 0) < 1 then
        return null;
    end if;
    with gone as (delete from app.ledger l where l.id > since returning l.*)
    insert into app.bygone select 'ledger', g.id::text, g.write_id, g.poison from gone g;
    insert into app.remade as r values ('ledger', since) on conflict (source) do update set since_id = least(r.since_id, excluded.since_id)
    returning r.since_id into since;
    perform setval(pg_get_serial_sequence('app.ledger', 'id'), greatest(since, 1), since > 0);
    return since;
end
$$;

-- A copy takes the table's place, as an operator does who moves a table.
create function app.swap_ledger() returns bigint language plpgsql set lock_timeout = '5s' as $$
begin
    lock table app.ledger in access exclusive mode;
    create table app.ledger_next (like app.ledger including all);
    insert into app.ledger_next overriding system value select l.* from app.ledger l;
    perform setval(pg_get_serial_sequence('app.ledger_next', 'id'), q.last_value, q.is_called) from app.ledger_id_seq q;
    drop table app.ledger;
    alter table app.ledger_next rename to ledger;
    alter sequence app.ledger_next_id_seq rename to ledger_id_seq;
    grant insert on app.ledger to chaos_writer;
    grant select on app.ledger, app.ledger_id_seq to chaos_daemon;
    return -1; -- as it is
end
$$;

create function app.rewind_ledger(since bigint) returns void language plpgsql as $$
begin
    perform tidemark.source_rewind('tables', 'ledger', 'chaos', to_id => nullif(since, -1)::text);
    if since >= 0 then
        delete from app.noted n using app.ledger l where n.source = 'ledger' and n.row_id = l.id::text and n.write_id = l.write_id and l.id > since;
    end if;
    delete from app.remade r where r.source = 'ledger';
end
$$;

create function app.detach_receipts() returns timestamptz language plpgsql set lock_timeout = '5s' as $$
begin
    lock table app.receipt in access exclusive mode;
    if exists (select from pg_inherits i where i.inhrelid = 'app.receipt_1'::regclass) then
        alter table app.receipt detach partition app.receipt_1;
        insert into app.remade as r (source, since_ts)
        select 'receipt', coalesce(c.watermark_ts, '-infinity') from tidemark.worker_cursor c where c.worker = 'tables' and c.source = 'receipt'
        on conflict (source) do update set since_ts = least(r.since_ts, excluded.since_ts);
    end if;
    return (select r.since_ts from app.remade r where r.source = 'receipt');
end
$$;

create function app.attach_receipts() returns void language plpgsql set lock_timeout = '5s' as $$
begin
    if not exists (select from pg_inherits i where i.inhrelid = 'app.receipt_1'::regclass) then
        alter table app.receipt attach partition app.receipt_1 for values with (modulus 2, remainder 1);
    end if;
end
$$;

create function app.rewind_receipts() returns void language plpgsql as $$
declare
    since timestamptz;
begin
    since := (select r.since_ts from app.remade r where r.source = 'receipt');
    if since is not null then
        perform tidemark.source_rewind('tables', 'receipt', 'chaos', to_ts => since);
        perform app.forget_receipts(since);
        delete from app.remade r where r.source = 'receipt';
    end if;
end
$$;
