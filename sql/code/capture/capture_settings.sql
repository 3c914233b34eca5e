create or replace function tidemark.capture_settings()
returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    -- A key and the name of its table have the same text in every session.
    select 'set datestyle = ''ISO, YMD'' set intervalstyle = ''postgres'' set timezone = ''UTC'' '
        'set bytea_output = ''hex'' set extra_float_digits = 1 set quote_all_identifiers = off'
$$;
comment on function tidemark.capture_settings() is
    'The settings of the functions of tidemark.capture_make, besides the search path.';
grant execute on function tidemark.capture_settings() to tidemark_reader;
