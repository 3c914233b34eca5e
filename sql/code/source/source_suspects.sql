-- A slow but healthy handler keeps a page size that it can handle: a page grows while it takes less than a quarter of
-- the timeout.
create or replace function tidemark.source_suspects(
    plan tidemark.source_plan, page tidemark.source_page, metadata jsonb, took interval)
returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    whole constant interval := current_setting('statement_timeout')::interval;
    -- A page that is not full was the last one: no suspects are left.
    remaining constant integer :=
        case when page.examined >= plan.rows_limit then plan.suspects - page.examined else 0 end;
    part constant integer := plan.rows_limit * case when remaining <= 0 and took < whole / 4 then 4 else 1 end;
    others constant jsonb := coalesce(source_suspects.metadata -> 'suspects', '{}') - plan.step;
begin
    if remaining <= 0 and (part >= (plan.worker).page_size or whole = interval '0') then
        return case when others = '{}' then source_suspects.metadata - 'suspects'
            else source_suspects.metadata || jsonb_build_object('suspects', others) end;
    end if;
    return source_suspects.metadata || jsonb_build_object('suspects', others || jsonb_build_object(plan.step,
        jsonb_build_object('left', case when remaining > 0 then remaining else part end, 'rows', part)));
end
$$;
comment on function tidemark.source_suspects(tidemark.source_plan, tidemark.source_page, jsonb, interval) is
    'The metadata of a cursor after a page of suspects (tidemark.source_cut), given the time that the page took: how '
    'many suspects are left, and how many rows the next page has. It drops both when all suspects were read and the '
    'pages have grown to the worker''s page_size.';
