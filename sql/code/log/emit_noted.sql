create or replace function tidemark.emit_noted(domain text, type text, emits bigint)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Not a counter: one emitter's transaction would hold its row, and others would wait for it. The limit is 8 MB, in
    -- case maintain never runs.
    if pg_relation_size('tidemark.emit_unregistered') < 8388608 then
        insert into tidemark.emit_unregistered (at, domain, type, role, emits)
        values (clock_timestamp(), left(coalesce(emit_noted.domain, ''), 63),
                                       left(coalesce(emit_noted.type, ''), 128), tidemark.login(), emit_noted.emits);
    end if;
end
$$;
comment on function tidemark.emit_noted(text, text, bigint) is
    'Records emits of a type that is not registered or not enabled, in tidemark.emit_unregistered.';
