#!/usr/bin/env bash
# Before a release: an upgrade under load, and back. Applications emit all the time. The daemon of a commit runs on its own schema, then
# on the one of this tree, then the daemon of this tree does, then the old one again, and the new one at the end. Each committed event
# must have reached an SQL function exactly once and in the order of its key, and standard output at least once.
# Needs psql and a server's superuser, for a database of its own.
#
#   TIDEMARK_TEST_URL=postgres://postgres@127.0.0.1:5432/postgres scripts/upgrade-live.sh COMMIT
set -euo pipefail
cd "$(dirname "$0")/.."

commit=${1:?usage: upgrade-live.sh COMMIT}
server=${TIDEMARK_TEST_URL:?the URL of a server as its superuser}
name=upgrade_live_$$
dir=$(mktemp -d)
export TIDEMARK_DATABASE_URL=${server%/*}/$name
sql() { psql -XqAt -v ON_ERROR_STOP=1 "$TIDEMARK_DATABASE_URL" "$@"; }
daemon=
writers=()
clean() {
	[ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
	[ ${#writers[@]} = 0 ] || kill "${writers[@]}" 2>/dev/null || true
	wait || true
	psql -Xq "$server" -c "drop database if exists $name with (force)" || true
	rm -rf "$dir"
}
trap clean EXIT

mkdir "$dir/tree"
git archive "$commit" | tar -x -C "$dir/tree"
(cd "$dir/tree" && go build -o "$dir/old" ./cmd/tidemark)
go build -o "$dir/new" ./cmd/tidemark

psql -Xq "$server" -c "create database $name"
"$dir/old" migrate up >/dev/null
sql <<'SQL' >/dev/null
create table sent (client int, n int, primary key (client, n));
create table got (at bigint generated always as identity primary key, client int, n int);
create table stop ();
create function take(event jsonb) returns void language sql as $$
    insert into got (client, n) values ((event -> 'payload' ->> 'client')::int, (event -> 'payload' ->> 'n')::int) $$;
create procedure load(client int) language plpgsql as $$
declare n int := 0;
begin
    while not exists (select from stop) loop
        n := n + 1;
        insert into sent values (client, n);
        perform tidemark.emit_strict('shop', 'tick', jsonb_build_object('client', client, 'n', n), key => client::text);
        perform pg_sleep(0.002);
        if n % 7 = 0 then rollback; else commit; end if;
    end loop;
end $$;
select tidemark.stage_set('live', 'test'), tidemark.type_set('shop', 'tick');
select tidemark.gate_set('routes.enabled', true), tidemark.gate_set('worker.default.enabled', true);
select tidemark.route_set('sql', '{"domain": "shop", "target_kind": "sql", "target_ref": "public.take", "ordering": "key", "enabled": true, "dry_run": false}');
select tidemark.route_set('out', '{"domain": "shop", "target_kind": "stdout", "target_ref": "log", "enabled": true, "dry_run": false}');
SQL
for client in 1 2 3; do
	sql -c "call load($client)" &
	writers+=($!)
done

start() {
	printf 'admin: {listen: ""}\n' >"$dir/tidemark.yaml"
	"$dir/$1" run --config "$dir/tidemark.yaml" >>"$dir/out" 2>>"$dir/log" &
	daemon=$!
}
halt() { kill -TERM "$daemon"; wait "$daemon" || { cat "$dir/log" >&2; exit 1; }; }
# delivers waits a minute for 300 more deliveries.
delivers() {
	local from now until=$((SECONDS + 60))
	from=$(sql -c 'select count(*) from got')
	while [ $SECONDS -lt $until ]; do
		kill -0 "$daemon" || { tail -20 "$dir/log" >&2; echo "upgrade-live.sh: the daemon has ended: $1" >&2; exit 1; }
		now=$(sql -c 'select count(*) from got')
		if [ $((now - from)) -ge 300 ]; then
			echo "$1: $((now - from)) more"
			return
		fi
		sleep 0.1
	done
	tail -20 "$dir/log" >&2
	echo "upgrade-live.sh: nothing is delivered: $1" >&2
	exit 1
}

start old
delivers "the old daemon on the old schema"
"$dir/new" migrate up >/dev/null
delivers "the old daemon on the new schema"
halt
start new
delivers "the new daemon"
halt
start old
delivers "back: the old daemon"
halt
start new
delivers "the new daemon again"

sql -c 'alter table stop add column now int; insert into stop default values'
wait "${writers[@]}"
writers=()
for _ in $(seq 600); do
	left=$(sql -c 'select (select count(*) from sent) - (select count(*) from got), (select count(*) from tidemark.pending)')
	[ "$left" != "0|0" ] || break
	sleep 0.1
done
halt
daemon=
problems=$(sql <<'SQL'
select 'lost: ' || s from sent s where not exists (select from got g where (g.client, g.n) = (s.client, s.n));
select 'never committed: ' || g from got g where not exists (select from sent s where (g.client, g.n) = (s.client, s.n));
select 'twice: ' || client || ' ' || n from got group by client, n having count(*) > 1;
select 'out of order: ' || g from (select g.*, lag(n) over (partition by client order by at) > n as late from got g) g where late;
select 'verify: ' || "check" || ': ' || detail from tidemark.verify() where status = 'fail';
SQL
)
sql -c "select client || ' ' || n from sent order by 1" | sort >"$dir/sent"
grep -o '"data": *{[^}]*}' "$dir/out" | sed -E 's/.*"n": *([0-9]+), *"client": *([0-9]+).*/\2 \1/' | sort -u >"$dir/printed"
problems+=$(comm -23 "$dir/sent" "$dir/printed" | sed 's/^/not printed: /' | head)
if [ -n "$problems" ]; then
	echo "$problems" | head -20 >&2
	exit 1
fi
echo "$(wc -l <"$dir/sent") events, each once and in order"
