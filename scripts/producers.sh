#!/usr/bin/env bash
# Installs the client libraries of examples/producers for Python and TypeScript to .producers/, where their runtimes are at hand, and
# prints that directory, for PRODUCERS. What cannot be installed is named, and the tests skip it.
set -uo pipefail
cd "$(dirname "$0")/.."

dir=$PWD/.producers
examples=$PWD/examples/producers
log=$dir/install.log
mkdir -p "$dir"

# installed says whether what a file asks for was installed, and marks it with done.
installed() { cmp -s "$1" "$dir/$2.installed"; }

python() {
	command -v python3 && python3 -m venv "$dir/python" &&
		"$dir/python/bin/pip" install --quiet --only-binary :all: -r "$examples/python/requirements.txt"
}

typescript() {
	command -v npm && mkdir -p "$dir/typescript" && cp "$examples/typescript/package.json" "$dir/typescript" &&
		(cd "$dir/typescript" && npm install --silent --no-audit --no-fund --no-package-lock --ignore-scripts)
}

for each in python:requirements.txt typescript:package.json; do
	language=${each%%:*} wants=$examples/$language/${each#*:}
	installed "$wants" "$language" && continue
	if "$language" >"$log" 2>&1; then
		cp "$wants" "$dir/$language.installed"
	else
		echo "producers.sh: no client libraries for $language, see $log: the tests skip it" >&2
	fi
done
echo "$dir"
