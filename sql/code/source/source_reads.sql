create or replace function tidemark.source_reads(value text, type text)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    execute format('select $1::%s', type) using value;
    return true;
exception when data_exception or integrity_constraint_violation then -- the latter of a domain
    return false;
end
$$;
comment on function tidemark.source_reads(text, text) is
    'Whether a value of this type can be read from the text. For events of which an emitter may have written the '
    'subject_ref.';
grant execute on function tidemark.source_reads(text, text) to tidemark_reader, tidemark_executor;
