#!/usr/bin/env bash
# Prints a directory with the jars of Apache Kafka, for KAFKA_JARS; with the argument debezium, of Kafka Connect with Debezium's
# connector for PostgreSQL. The first run has Maven download them to .kafka/ from Maven Central, or from the registry that Maven's
# settings or MAVEN_ARGS name, and checks each against scripts/kafka/*.sha256. Java and Maven are installed if they are missing.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/as-root.sh

what=${1:-broker}
[ -e "scripts/kafka/$what.xml" ] || { echo "usage: kafka.sh [broker | debezium]" >&2; exit 2; }

usable() {
	local major
	major=$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p')
	[ "${major:-0}" -ge 17 ]
}

# install PACKAGE… installs Debian's packages.
install() {
	command -v apt-get >/dev/null || { echo "kafka.sh: install Java 17 or newer and Maven" >&2; return 1; }
	as_root apt-get update -q >&2
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@" >&2
}

usable || install default-jre-headless
usable || { echo "kafka.sh: Kafka needs Java 17 or newer" >&2; exit 1; }

sums=$PWD/scripts/kafka/$what.sha256
dir=$PWD/.kafka/$what
checksum=$(command -v sha256sum || echo shasum -a 256)

# complete says whether the folder has the jars of the list, unchanged, and no other.
complete() {
	[ -d "$dir" ] && [ "$(cd "$dir" && LC_ALL=C ls)" = "$(awk '{print $2}' "$sums")" ] && (cd "$dir" && $checksum --status -c "$sums")
}

if ! complete; then
	command -v mvn >/dev/null || install maven
	rm -rf "$dir"
	# shellcheck disable=SC2086 # MAVEN_ARGS is a list
	mvn ${MAVEN_ARGS:-} -B -q -Dstyle.color=never --strict-checksums -f "scripts/kafka/$what.xml" \
		org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
		-DincludeScope=runtime -DoutputDirectory="$dir" >&2
	if ! complete; then
		echo "kafka.sh: the jars in $dir are not those of $sums" >&2
		exit 1
	fi
fi
echo "$dir"
