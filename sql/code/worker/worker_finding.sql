create or replace function tidemark.worker_finding(
    worker text,
    kind text,
    subject text,
    detail text,
    epoch bigint default null,
    message text default null,
    shard integer default 0)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    of_route constant boolean := worker_finding.kind in (
        'target_down', 'credentials_refused', 'two_copies', 'route_misconfigured');
    lease text;
    elsewhere boolean;
begin
    if worker_finding.kind is null
        or worker_finding.kind not in ('cursor_lease_conflict', 'cursor_watermark_regression', 'route_misconfigured',
                                       'target_down', 'credentials_refused', 'two_copies', 'worker_failing') then
        raise exception using errcode = 'TM005', message = format('a worker cannot report "%s"', worker_finding.kind);
    end if;
    -- The worker does not wait here for an operator's open transaction, which may hold the route (dry_run) or the
    -- finding (ack): it would read nothing meanwhile. It reports again after its next pass. It locks in the order of a
    -- change of the route.
    if of_route and worker_finding.detail is not null then
        -- Report nothing about a route that was switched off meanwhile, nor that a target fails which gets nothing.
        perform from tidemark.outbound_route r
        where r.route_code = worker_finding.subject and r.worker = worker_finding.worker and r.enabled and not r.dry_run
          and (r.paused_at is null or worker_finding.kind = 'route_misconfigured')
        for share nowait;
        if not found then
            return;
        end if;
    end if;
    if of_route or worker_finding.kind = 'worker_failing' then
        perform from tidemark.finding f
        where f.kind = worker_finding.kind and f.subject = worker_finding.subject and f.closed_at is null
        for update nowait;
    end if;
    -- An instance that was paused may report after another one took over.
    if epoch is not null then
        perform tidemark.lease_check(worker_finding.worker, epoch, 'outbox', worker_finding.shard);
    end if;
    if worker_finding.detail is null then
        perform tidemark.finding_close(worker_finding.kind, worker_finding.subject);
    else
        if worker_finding.kind = 'cursor_lease_conflict' then
            -- The subject is the worker, or one cursor of it.
            select format(', reported by pid %s, application "%s", user %s; %s', pg_backend_pid(),
                          current_setting('application_name'), tidemark.login(),
                          coalesce(format('the lease is of %s, epoch %s, until %s', h.lease_owner, h.lease_epoch,
                                          date_trunc('second', h.lease_until)),
                                   'no instance has the lease now')), h.lease_timeline <> tidemark.timeline()
            into lease, elsewhere
            from tidemark.heartbeat h
            where h.executor_id in (worker_finding.subject, tidemark.executor_id(worker_finding.subject, 'outbox', 0));
            if elsewhere or exists (
                select from tidemark.audit a
                where a.object = 'installation' and a.action = 'server_changed'
                  and a.at > clock_timestamp() - interval '10 minutes')
            then
                -- The lease ended with the server that it was taken on.
                return;
            end if;
        end if;
        perform tidemark.finding_open(worker_finding.kind, worker_finding.subject,
            case worker_finding.kind when 'cursor_lease_conflict' then 'warning' else 'high' end::tidemark.severity,
            format('worker %s: %s%s', worker_finding.worker, worker_finding.detail, lease), worker_finding.message);
    end if;
end
$$;
comment on function tidemark.worker_finding(text, text, text, text, bigint, text, integer) is
    'Opens or closes a worker''s finding about itself or a route: cursor_lease_conflict, cursor_watermark_regression, '
    'route_misconfigured, target_down, credentials_refused, two_copies or worker_failing. detail null: the problem '
    'is over. epoch: report only while the lease has that epoch (TM011: it has another by now); null: at any time. '
    'For a lease conflict it adds the reporting session, and the owner of the lease. message: the text of an error, '
    'which may quote a payload (tidemark.finding_detail).';
grant execute on function tidemark.worker_finding(text, text, text, text, bigint, text, integer) to tidemark_executor;
