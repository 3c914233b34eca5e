#!/usr/bin/env bash
# Tests that the README's two commands work on a bare machine: a minimal Debian in a chroot, with only this machine's Go,
# and make and git. Needs root, Debian or a derivative of it, and debootstrap.
#
#   scripts/bare-machine.sh                 make demo, then make test
#   scripts/bare-machine.sh make demo       another command, in the clone of HEAD
#
# SUITE chooses another release of Debian.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/chroot.sh

chroot_make
cp -a "$(go env GOROOT)" "$root/usr/local/go"

step "make and git"
inside apt-get update -q
inside env DEBIAN_FRONTEND=noninteractive apt-get install -q -y make git
git clone -q --no-hardlinks . "$root/root/tidemark"

in_clone() {
	step "$*"
	inside sh -c 'cd /root/tidemark && exec "$@"' sh "$@"
}
if [ $# -gt 0 ]; then
	in_clone "$@"
else
	in_clone make demo
	in_clone make test
fi
step "done"
