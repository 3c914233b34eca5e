#!/usr/bin/env bash
# The newcomer's stopwatch: in a minimal Debian with PostgreSQL, the package is installed and the commands of docs/quickstart.md are
# typed, without pauses. It fails unless an event arrives at a webhook after at most 7 commands and 60 seconds. Needs root, debootstrap and Go.
#
#   scripts/newcomer.sh PACKAGE.deb
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/chroot.sh

package=${1:?the package, as make dist makes it in dist/}
chroot_make

step "PostgreSQL, a database, and a service that takes webhooks"
inside apt-get update -q
inside env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends postgresql postgresql-client
version=$(ls "$root/etc/postgresql")
inside pg_ctlcluster "$version" main start
stop() {
	if [ -e "$root/root/daemon.pid" ]; then
		kill "$(cat "$root/root/daemon.pid")" || true
		timeout 30 tail --pid="$(cat "$root/root/daemon.pid")" -f /dev/null || true
	fi
	inside pg_ctlcluster -m immediate "$version" main stop || true
	chroot_clean
}
trap stop EXIT
inside su postgres -c "psql -qc \"create role ada login createrole password 'secret'\" -c 'create database shop owner ada'"
cat >"$root/usr/local/bin/receiver" <<'END'
#!/usr/bin/perl
use IO::Socket::INET;
alarm 300;
my $server = IO::Socket::INET->new(LocalAddr => "127.0.0.1:8080", Listen => 1, ReuseAddr => 1) or die $!;
my $client = $server->accept;
my ($line, $length) = ("", 0);
while (($line = <$client>) =~ /\S/) { $length = $1 if $line =~ /^content-length: *(\d+)/i }
read $client, my $body, $length;
print $client "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
open my $file, ">", "/tmp/arrived";
print $file "$body\n";
END
chmod +x "$root/usr/local/bin/receiver"
inside receiver &
cp "$package" "$root/root/"
printf '#!/bin/sh\nexec "$@"\n' >"$root/usr/local/bin/sudo" # root needs none
chmod +x "$root/usr/local/bin/sudo"

# The commands are the lines of the page's blocks, without those that continue one.
awk '/^```sh$/ {inside = 1; next} /^```$/ {inside = 0} inside' docs/quickstart.md >"$root/root/typed"
commands=$(awk '!inside && NF {n++} /<<.SQL/ {inside = 1} /^SQL$/ {inside = 0} END {print n}' "$root/root/typed")

step "$commands commands"
began=$(date +%s%N)
inside bash -euc 'cd /root && . ./typed && echo $! >daemon.pid; for i in $(seq 600); do test -s /tmp/arrived && exit; sleep 0.1; done; exit 1' ||
	{ echo "newcomer.sh: no event arrived" >&2; exit 1; }
took=$((($(date +%s%N) - began) / 1000000))
step "the first event has arrived"
cat "$root/tmp/arrived"
echo "newcomer.sh: $commands commands, $took ms"
[ "$commands" -le 7 ] && [ "$took" -le 60000 ] || { echo "newcomer.sh: more than 7 commands or 60 seconds" >&2; exit 1; }

step "what the package installed"
inside tidemark version
inside dpkg -V tidemark # nothing differs from the package
[ "$(inside stat -c '%a %U' /etc/tidemark/tidemark.env)" = "600 root" ]
inside apt-get purge -q -y tidemark
if inside sh -c 'test -e /etc/tidemark || test -e /usr/bin/tidemark'; then
	echo "newcomer.sh: the package leaves files behind" >&2
	exit 1
fi
step "done"
