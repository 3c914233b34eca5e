-- Not a security definer, as tidemark.target_call is not: the transform runs with the rights and the search_path of the
-- role that delivers. It can write nothing: each attempt calls it again, and so do dry runs and backtests.
create or replace function tidemark.transformed(transform text, columns text[], payloads jsonb[], path text)
returns jsonb[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    most bigint;
    target record;
    ran boolean := false;
    name text;
    -- One statement of the client calls this many times: those that a target has prepared in between stay.
    known constant text[] := case when transformed.transform is not null then array(
        select concat_ws(' ', quote_ident(p.name), p.statement)
        from pg_prepared_statements p where p.prepare_time = statement_timestamp()) end;
    made jsonb[] := transformed.payloads;
    wrong record;
begin
    if transformed.transform is not null then
        target := tidemark.transform_target(transformed.transform);
        if target.problem is not null then
            raise exception using errcode = 'undefined_function', message = target.problem;
        end if;
        -- Nothing that it did stays, not even what would come at the commit: a cursor with hold runs its query there.
        -- Only an advisory lock of the session does: to find it, pg_locks would be read twice for each event.
        begin
            perform set_config('search_path', transformed.path, true), set_config('transaction_read_only', 'on', true);
            execute (
                select pg_catalog.format('select pg_catalog.array_agg(%I.%I(p.payload) order by p.n) '
                                         'from pg_catalog.unnest($1) with ordinality p (payload, n)',
                                         n.nspname, f.proname)
                from pg_catalog.pg_proc f join pg_catalog.pg_namespace n on n.oid = f.pronamespace
                where f.oid = target.function) into made using transformed.payloads;
            ran := true;
            raise exception using errcode = 'UNDO0';
        exception when others or assert_failure or query_canceled then
            -- A prepared statement outlasts the rollback, and may have the name of one that the client has prepared and
            -- goes on to execute. Its time is that of the client's statement under way.
            for name in
                select p.name from pg_prepared_statements p
                where p.prepare_time = statement_timestamp()
                  and concat_ws(' ', quote_ident(p.name), p.statement) <> all (known)
            loop
                execute format('deallocate %I', name);
            end loop;
            if found then
                raise insufficient_privilege using
                    message = 'it prepared a statement in this session, which was dropped';
            elsif not ran or sqlstate <> 'UNDO0' then
                raise; -- its own
            end if;
        end;
    end if;
    select m.payload into wrong from unnest(made) m (payload) where jsonb_typeof(m.payload) <> 'object' limit 1;
    if found then
        raise exception using errcode = 'TM005',
            message = format('the payload is %s, not an object', jsonb_typeof(wrong.payload));
    end if;
    if transformed.columns is not null then
        made := array(
            select case when m.payload is not null then coalesce(
                (select jsonb_object_agg(c.key, m.payload -> c.key) from unnest(transformed.columns) c (key)
                 where m.payload ? c.key), '{}') end
            from unnest(made) with ordinality m (payload, n) order by m.n);
    end if;
    if transformed.transform is not null then
        most := tidemark.payload_limit();
        select octet_length(m.payload::text) as bytes into wrong
        from unnest(made) m (payload) where octet_length(m.payload::text) > most limit 1;
        if found then
            raise exception using errcode = 'TM005',
                message = format('the payload has %s bytes, and must have at most %s', wrong.bytes, most);
        end if;
    end if;
    return made;
end
$$;
comment on function tidemark.transformed(text, text[], jsonb[], text) is
    'The payloads that a route with this transform and these columns delivers in place of these, in their order; null: '
    'the transform drops the event. The transform runs with search_path path; it cannot write, and nothing stays of '
    'what it does but advisory locks of the session. Raises what the transform raises, undefined_function where there '
    'is none, 42501 where it prepares a statement, and TM005 for a payload that is no object or that exceeds the '
    'setting emit.payload_limit.';
grant execute on function tidemark.transformed(text, text[], jsonb[], text) to tidemark_executor;
