-- What is told of a route is bound to the lease from now on: worker_finding takes its epoch.

set local role tidemark_owner;

drop function if exists tidemark.worker_finding;
