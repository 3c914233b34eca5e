#!/usr/bin/env bash
# Installs the client libraries of examples/producers and examples/clients to .producers/, for the languages whose runtimes are at
# hand, and prints that directory, for PRODUCERS. What cannot be installed is named, and the tests skip it.
set -uo pipefail
cd "$(dirname "$0")/.."

dir=$PWD/.producers
log=$dir/install.log
mkdir -p "$dir"

# Each takes the directory to install to, and the file that says what.
python() {
	command -v python3 && python3 -m venv "$1" && "$1/bin/pip" install --quiet --only-binary :all: -r "$2"
}

node() {
	command -v npm && mkdir -p "$1" && cp "$2" "$1/package.json" &&
		(cd "$1" && npm install --silent --no-audit --no-fund --no-package-lock --ignore-scripts)
}

java() {
	# shellcheck disable=SC2086 # MAVEN_ARGS is a list
	command -v mvn && mvn ${MAVEN_ARGS:-} -B -q -Dstyle.color=never --strict-checksums -f "$2" \
		org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$1"
}

install() {
	local with=$1 name=$2 wants=examples/$3
	cmp -s "$wants" "$dir/$name.installed" && return
	if "$with" "$dir/$name" "$wants" >"$log" 2>&1; then
		cp "$wants" "$dir/$name.installed" # done
	else
		echo "producers.sh: no client libraries for $name, see $log: the tests skip it" >&2
	fi
}
install python python producers/python/requirements.txt
install node typescript producers/typescript/package.json
install python clients-python clients/python/requirements.txt
install node clients-node clients/node/package.json
install node clients-api clients/api/package.json
install java clients-java clients/java/pom.xml
echo "$dir"
