create or replace function tidemark.worker_finding(
    worker text,
    kind text,
    subject text,
    detail text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if worker_finding.kind is null or worker_finding.kind not in ('cursor_lease_conflict', 'cursor_watermark_regression', 'route_misconfigured', 'target_down') then
        raise exception using errcode = 'TM005', message = format('a worker cannot report "%s"', worker_finding.kind);
    end if;
    if worker_finding.detail is null then
        perform tidemark.finding_close(worker_finding.kind, worker_finding.subject);
    else
        perform tidemark.finding_open(worker_finding.kind, worker_finding.subject,
            case worker_finding.kind when 'cursor_lease_conflict' then 'warning' else 'high' end::tidemark.severity,
            format('worker %s: %s', worker_finding.worker, worker_finding.detail));
    end if;
end
$$;
comment on function tidemark.worker_finding(text, text, text, text) is 'What a worker reports about itself or a route: cursor_lease_conflict, cursor_watermark_regression, route_misconfigured or target_down. detail null: it is over.';
revoke all on function tidemark.worker_finding(text, text, text, text) from public;
grant execute on function tidemark.worker_finding(text, text, text, text) to tidemark_executor;
