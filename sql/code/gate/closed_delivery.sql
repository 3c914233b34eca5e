create or replace function tidemark.closed_delivery(worker text, domain text)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return coalesce(
        tidemark.closed_gate(closed_delivery.worker),
        case when closed_delivery.domain = any (tidemark.closed_domains())
                  then 'domain.' || closed_delivery.domain || '.enabled' end);
end
$$;
comment on function tidemark.closed_delivery(text, text) is
    'The gate that keeps the worker from delivering events of this domain: one of the worker (tidemark.closed_gate) '
    'or that of the domain. Null: none.';
grant execute on function tidemark.closed_delivery(text, text) to tidemark_reader, tidemark_executor;
