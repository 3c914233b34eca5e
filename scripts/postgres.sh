#!/bin/sh
# Installs PostgreSQL's programs unless this machine has a version that the tests
# and the demo can run. These start private servers and need no system server.
set -eu
. "$(dirname "$0")/as-root.sh"

oldest=15

# usable DIR checks the same as Usable in internal/devpg.
usable() {
	[ -x "$1/initdb" ] && [ -x "$1/postgres" ] || return 1
	major=$("$1/postgres" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')
	[ "${major:-0}" -ge "$oldest" ]
}

found() {
	if [ -n "${PG_BIN:-}" ]; then
		usable "$PG_BIN"
		return
	fi
	for dir in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /usr/libexec/postgresql* \
		/opt/homebrew/opt/postgresql@*/bin /usr/local/opt/postgresql@*/bin \
		/Applications/Postgres.app/Contents/Versions/*/bin \
		"$(pg_config --bindir 2>/dev/null || true)" \
		"$(dirname "$(command -v postgres || echo /nonexistent/postgres)")"; do
		if usable "$dir"; then return 0; fi
	done
	return 1
}

if found; then exit 0; fi
if [ -n "${PG_BIN:-}" ]; then
	echo "PG_BIN=$PG_BIN has no initdb and postgres of PostgreSQL $oldest or newer" >&2
	exit 1
fi

echo "PostgreSQL $oldest or newer is not installed; installing it"
if command -v apt-get >/dev/null; then
	# Debian's packages create and start a server. This setting prevents that, and
	# is removed again at the end.
	no_cluster=/etc/postgresql-common/createcluster.d/tidemark.conf
	as_root mkdir -p "$(dirname "$no_cluster")"
	as_root sh -c "echo 'create_main_cluster = false' >$no_cluster"
	trap 'as_root rm -f "$no_cluster"' EXIT
	as_root apt-get update -q
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends postgresql
elif [ "$(uname)" = Darwin ] && command -v brew >/dev/null; then
	brew install postgresql@17
else
	echo "install PostgreSQL $oldest or newer with this system's package manager, or set PG_BIN" >&2
	exit 1
fi

if ! found; then
	echo "this system's packages have no PostgreSQL $oldest or newer: see https://www.postgresql.org/download/" >&2
	exit 1
fi
