#!/usr/bin/env bash
# Makes the fixture that TestUpgrade upgrades: an installation in use (states.sql in sql/test/testdata/upgrade), made by the
# build of a commit and dumped as SQL. Needs PostgreSQL 15 with its clients: an older server refuses a newer pg_dump's output.
set -euo pipefail
cd "$(dirname "$0")/.."

commit=${1:?usage: upgrade-fixture.sh COMMIT}
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
git archive "$commit" | tar -x -C "$build"
(cd "$build" && go build -o tidemark ./cmd/tidemark)
go test ./sql/test -count=1 -run 'TestUpgrade$' -fixture "$build/tidemark"
git status --short sql/test/testdata/upgrade
