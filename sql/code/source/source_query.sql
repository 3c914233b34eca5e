-- The one statement that is made for another role's table: it reads a page. Parameters, in the types of the cursor: $1,
-- $2 the place to begin after (timestamp, id), $3 the horizon, $4 the number of rows, $5 ids, $6 the shard, $7 and $12
-- the transactions from which a sweep reads rows and the ledger keeps them, $8 holes, $9, $10 the end of a sweep, $11
-- the worker's id.
create or replace function tidemark.source_query(
    definition tidemark.source,
    shards integer,
    step text,
    act text,
    coalesced boolean default false,
    columns_ text[] default null)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    table_ constant text := format('%I.%I', definition.schema_name, definition.table_name);
    -- Rows of the table's own type for an SQL function; JSON for a handler that emits events or reads rows itself.
    typed constant boolean := act not in ('ids', 'every', 'keys', 'rows', 'emit', 'kept', 'text', 'next')
        and act not like E'\x02%';
    rel text := tidemark.source_row(definition, case
        when act like E'\x02%' then split_part(act, E'\x02', 3)
        when typed then format('tidemark.as_is(tidemark_row.*, null::%s)', table_) end);
    whole constant text := case when typed or act like E'\x02%' then 'tidemark_row.tidemark_whole'
                                when act in ('ids', 'every', 'next') then 'null::jsonb'
                                when act = 'keys' then 'true'
                                else tidemark.source_json(definition, columns_, act = 'text') end;
    -- Always qualify the id: a bare name in ORDER BY would be the output column of that name, in another type.
    id_ constant text := format('tidemark_row.%I', definition.id_column);
    id text := id_ || case when definition.id_collate_c then ' collate "C"' else '' end;
    time_ constant record := tidemark.source_time(definition);
    ts constant text := time_.stored;
    zone constant text := time_.zone;
    -- The time as JSON can show it.
    told constant text :=
        'case when %1$s >= ''0001-01-02 00:00:00+00'' and %1$s < ''9999-12-31 00:00:00+00'' then %1$s end';
    shown constant text := 'jsonb_build_object(''id'', e.id::text, ''ts'', to_char(' || format(told, 'e.ts')
        || ' at time zone ''UTC'', ''YYYY-MM-DD"T"HH24:MI:SS.US"Z"''), ''row'', e.r)';
    after_ts constant text := '($1' || zone || ')';
    after_id constant text := '$2::' || definition.id_type;
    numbered constant boolean := definition.safety in ('sequence', 'capture');
    segment constant boolean := step in ('null', '-infinity', 'infinity');
    sweeping constant boolean := segment or step = 'sweep';
    swept constant boolean := definition.sweep_window is not null;
    together constant boolean := coalesced and step not in ('ids', 'retry');
    -- Two events may name one row: it was deleted, and inserted again.
    once constant text := case when together then 'e.g' when definition.safety = 'capture' and step = 'forward'
                               then 'e.id' end;
    -- A row keeps 32 bits of its transaction's number. Visible transactions are below the snapshot's end.
    bound constant text := '(select pg_snapshot_xmax(pg_current_snapshot())::text::bigint)';
    wide constant text := format('(%s & -4294967296 | tidemark_row.xmin::text::bigint)', bound);
    xid constant text := format('case when %1$s >= %2$s then %1$s - 4294967296 else %1$s end', wide, bound);
    fits constant text := case when act <> 'next' then tidemark.source_fits(definition, shards, '$6') end;
    forwards constant text := case when definition.safety in ('sequence', 'capture') then 'e.pos'
        else 'e.ts, e.id' || case when definition.id_collate_c then ' collate "C"' else '' end end;
    backwards constant text := replace(forwards, ',', ' desc,') || ' desc';
    columns text;
    page text;
    fresh text := 'e.fits';
    noted text;
begin
    columns := format('%s as r, %s as id, %s as ts, %s as fits, %s as xid, %s as g, %s as pos', whole, id_,
        time_.at, fits, case when sweeping or swept and step = 'forward' then xid else 'null::bigint' end,
        case when together
                  then format('row(%s)', (select string_agg(format('tidemark_row.%I', g), ', ')
                                          from unnest(definition.group_key) g))
             else 'null' end, case when definition.safety = 'sequence' then id_ || '::bigint' else id_ end);
    if act = 'next' then
        columns := format('true as found_, %s as at, %s as pos', time_.at,
                          case when definition.safety = 'sequence' then id_ || '::bigint' else 'null::bigint' end);
        if definition.safety = 'capture' and step = 'forward' then
            columns := 'true as found_, null::timestamptz as at, o.seq as pos';
            rel := 'tidemark.outbox o';
            id := 'o.seq';
        end if;
    elsif definition.safety = 'capture' and step = 'forward' then
        -- The log names the rows to read. They are read by id, since they are spread over the table. A row that is gone
        -- by now is skipped.
        columns := 'x.r, x.id, x.ts, coalesce(x.fits, false) as fits, null::bigint as xid, x.g, o.seq as pos';
        rel := format('tidemark.outbox o left join lateral (
        select %s from %s
        where %s = (case when o.subject_table = %L and o.payload ->> ''operation'' = ''insert''
                    then case when o.inbound_id is not null then o.subject_ref
                              -- An earlier release may have captured it, or an emitter may have written it.
                              when o.seq <= %s and tidemark.source_reads(o.subject_ref, %L) then o.subject_ref end
                    end)::%s
        limit 1) x on true',
            format('%s as r, %s as id, %s as ts, %s as fits, %s as g', whole, id_, time_.at, fits,
                case when together
                          then format('row(%s)',
                                      (select string_agg(format('tidemark_row.%I', g), ', ')
                                       from unnest(definition.group_key) g)) else 'null' end),
            rel, id_, table_, tidemark.captured_upto(), definition.id_type, definition.id_type);
        id := 'o.seq';
    end if;

    page := case
        when step = 'forward' and numbered then format(
            'with late as materialized (
    select x.* from unnest($8::int8multirange) hole (span) cross join lateral (
        select %1$s from %2$s where %3$s >= lower(hole.span) and %3$s < upper(hole.span) order by %3$s limit $4) x
    order by x.pos limit $4)
select l.*, true as late from late l
union all
select x.*, false from (
    select %1$s from %2$s where %3$s > $2::bigint order by %3$s limit greatest(0, $4 - (select count(*) from late))) x',
            columns, rel, id)
        when step = 'forward' then format(
            'select %s, false as late from %s where (%s, %s) > (%s, %s) and %3$s < ($3%7$s)%8$s order by %3$s, %4$s '
            'limit $4',
            columns, rel, ts, id, after_ts, after_id, zone,
            -- When summer time ends, a local time occurs twice and may be the second one: it waits until both are over.
            case when zone <> '' then format(' and %s < $3 and not %s', time_.at, time_.early) else '' end)
        when step = 'sweep' then format(
            'select %s, false as late from %s
where (%s, %s) > (%s, %s) and (%3$s, %4$s) <= (($9%7$s), $10::%8$s)%9$s order by %3$s, %4$s limit $4',
            columns, rel, ts, id, after_ts, after_id, zone, definition.id_type,
            case when zone <> '' then ' and not ' || time_.early else '' end)
        when segment then format(
            'select %s, false as late from %s where %s and ($2 is null or %s > %s) order by %s, %4$s limit $4',
            columns, rel, case step when 'null' then ts || ' is null' when 'infinity' then time_.late
                               else time_.early end, id, after_id, ts)
        when step = 'ids' then format(
            'select %s, false as late from %s where %s = any ($5::%s[]) order by %s',
            columns, rel, id_, definition.id_type,
            -- The order of the page.
            case definition.safety
                when 'sequence' then id
                when 'capture' then format('array_position($5, %s::text)', id_)
                else concat_ws(', ', ts, id) end)
        -- limit 1: a join that reads the whole table would make JSON of unneeded rows.
        when step = 'retry' then format(
            'select %6$s as r, p.item_id as id, %7$s as ts, true as fits,
    t.xid, null as g, p.item_id as pos, false as late
from tidemark.source_due($11, %4$L, $6, $4, $5) p
left join lateral (
    select true as there, %5$s as r, %8$s as at, %10$s as xid from %2$s where %3$s = p.item_id::%1$s%9$s limit 1) t
on true
order by p.item_ts, p.item_id',
            definition.id_type, rel, id_, definition.source, whole,
            case when typed then 'case when t.there then t.r else tidemark.source_rebuild(t.r, '
                                 'tidemark.source_whole(p.snapshot)) end'
                 when act in ('rows', 'emit')
                      then format('coalesce(t.r, tidemark.source_whole(p.snapshot, %L::text[]))', columns_)
                 when act = 'keys' then 't.r'
                 else 'coalesce(t.r, p.snapshot)' end,
            case act when 'keys' then 't.at' else 'p.item_ts' end, time_.at,
            -- If a number was given out again, its row is another one, and is read in its turn.
            case when definition.safety = 'sequence' and definition.timestamp_column is not null
                 then format(' and (' || told || ') is not distinct from p.item_ts', time_.at) else '' end,
            case when numbered then 'null::bigint' else xid end)
        end;
    if act = 'next' then
        return page;
    end if;
    if sweeping then
        -- A row that failed waits for its next attempt or for an operator, even if it has changed since. The last
        -- subquery is no EXISTS, which could read all dead letters first.
        fresh := format('e.fits and e.xid >= $7 and not exists (
    select from tidemark.source_ledger l
    where l.worker_id = $11 and l.source = %1$L and l.shard = $6 and l.item_id = e.id::text)
and not exists (
    select from tidemark.pending_row p
    where p.worker_id = $11 and p.source = %1$L and p.shard = $6 and p.item_id = e.id::text)
and (select l.resolved_at is null from tidemark.dead_letter l
     where l.idempotency_key = concat_ws('':'', ''tm'', (select w.worker from tidemark.worker w where w.id = $11), %1$L,
                                         e.id::text)) is not true', definition.source);
    end if;
    page := format('select e.*, %s as fresh from (%s) e', fresh, page);
    page := format('select e.*, e.fresh%s as takes from (%s) e',
        coalesce(' and row_number() over (partition by e.fresh, ' || once || ' order by ' || backwards || ') = 1', ''),
        page);
    if once is not null then
        page := page || ' order by ' || forwards;
    end if;

    if act like E'\x02%' then
        return format('select (count(*) filter (where b.bytes <= %s))::integer, count(*)::integer
from (select sum(e.r) over (rows between unbounded preceding and current row) as bytes from (%s) e) b',
            split_part(act, E'\x02', 2), page);
    end if;
    noted := case when sweeping or swept and step = 'forward' then ' filter (where e.fresh and e.xid >= $12)' end;
    return format('with e as %s(%s)
select count(*)::integer, (count(*) filter (where e.takes))::integer, (count(*) filter (where e.fresh))::integer,
    max(e.ts), (array_agg(e.pos))[count(*)::integer]::text, (count(*) filter (where e.late))::integer,
    %s, %s, %s, %s, %s, %s from e',
        case when sweeping then 'materialized ' else '' end, page,
        case when step = 'forward' and numbered then 'array_agg(e.pos)' else 'null::bigint[]' end,
        case
            when act = 'ids' then 'to_jsonb(array_agg(e.id::text) filter (where e.takes))'
            when act = 'every' then 'to_jsonb(array_agg(e.id::text))'
            when act = 'keys' then case step when 'forward' then 'null::jsonb'
                else 'jsonb_agg(jsonb_build_array(e.id::text, e.ts, e.r)) filter (where e.takes)' end
            when act in ('rows', 'emit', 'kept', 'text') then 'jsonb_agg(' || shown || ') filter (where e.takes)'
            else 'array_agg(e.r) filter (where e.takes)' end,
        case when step in ('retry', 'ids') then 'array_agg(e.id::text)'
             when noted is not null then 'array_agg(e.id::text)' || noted else 'null::text[]' end,
        case when noted is not null then 'array_agg(e.xid::text)' || noted
             -- A row that was changed since it failed must not come once more by the next sweep.
             when step = 'retry' and not numbered then 'array_agg(case when e.xid >= $12 then e.xid::text end)'
             else 'null::text[]' end,
        case when swept and step in ('forward', 'sweep') then format(
            '(select jsonb_object_agg(b.at, b.n) from (
    select date_bin(%L, f.ts, %L) as at, count(*) as n from e f where f.fresh and f.ts >= %L group by 1) b)',
            -- The same buckets as in tidemark.source_recount.
            definition.bucket, '2000-01-01 00:00:00+00', '0001-01-01 00:00:00+00') else 'null::jsonb' end,
        case when step = 'forward' and definition.safety = 'sequence' and definition.timestamp_column is not null
                  then 'array_agg(e.ts)'
             else 'null::timestamptz[]' end);
end
$$;
comment on function tidemark.source_query(tidemark.source, integer, text, text, boolean, text[]) is
    'The statement that reads a page of a source, for tidemark.source_look. step: forward, sweep, null, -infinity, '
    'infinity (rows without a usable timestamp, by id), ids or retry. act: the call of an SQL function (its argument '
    'left open by tidemark.source_handler), emit or rows (as JSON), kept (as rows, but a row that is gone is its '
    'snapshot, whole or not), text (as kept, with the text of each column), ids, every (as ids, but with the rows that '
    'are not to be handed over), keys (in other steps than forward the id, the time and whether it is there of each '
    'row), or next (whether a row exists, the time of the first one and, for the safety sequence, its number; $4 is 1, '
    'and it reads only $1 to $4 and $8). Or act is a number of bytes and the size of a row, each after a character 2: '
    'how many rows of the page fit, and how many the page has. columns_: JSON shows only these columns (null: all). '
    'Yields the columns of a tidemark.source_page; its result has the rows to be handed over, for an SQL function as '
    'an array of the table''s rows. Every name is quoted; values are parameters.';
grant execute on function tidemark.source_query(tidemark.source, integer, text, text, boolean, text[])
    to tidemark_reader, tidemark_executor;
