create or replace function tidemark.command_result_check(result jsonb, bytes integer, schema jsonb)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    -- The result becomes an event, and emit_all does not check its payload.
    most constant integer := 921600;
    deepest constant integer := 499; -- tidemark.event_check, less the level of the document
    violated text;
begin
    if bytes > most then
        raise exception using errcode = 'program_limit_exceeded', constraint = 'runtime.result_too_large',
            message = format('the result has %s bytes, and may have %s', bytes, most);
    elsif bytes > 2 * deepest and jsonb_path_exists(
        result, format('strict $.**{%s} ? (@.type() == "object" || @.type() == "array")', deepest)::jsonpath) then
        raise exception using errcode = 'program_limit_exceeded', constraint = 'runtime.result_too_large',
            message = format('the result nests deeper than %s levels', deepest);
    elsif schema is not null then
        select string_agg(e, '; ' order by e) into violated
        from (select e from tidemark.contract_errors(coalesce(result, 'null'), schema) e limit 20) e;
        if violated is not null then
            raise exception using errcode = 'data_exception', constraint = 'runtime.result_invalid',
                message = left('the result does not fit its schema: ' || violated, 1000);
        end if;
    end if;
end
$$;
comment on function tidemark.command_result_check(jsonb, integer, jsonb) is
    'Raises 54000 with the constraint runtime.result_too_large for a result of a command with too many bytes or '
    'levels, and 22000 with runtime.result_invalid for one that does not fit its schema, as far as SQL checks it.';
