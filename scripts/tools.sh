#!/bin/sh
# Installs the other tools of the tests if they are missing: make, a C compiler for the race detector, PgBouncer, which one
# test uses, Prometheus with promtool for the alert rules, and Chromium and nginx for the console.
set -eu
. "$(dirname "$0")/as-root.sh"

PATH=$PATH:/usr/sbin:/sbin # Debian's PgBouncer is in /usr/sbin, which not every user has in PATH

missing() {
	for tool in make cc pgbouncer promtool prometheus nginx; do
		command -v "$tool" >/dev/null || echo "$tool"
	done
	command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null ||
		echo chromium
}

lacking=$(missing)
[ -n "$lacking" ] || exit 0
echo "the tests need $(echo $lacking); installing"
if command -v apt-get >/dev/null; then
	packages=
	for tool in $lacking; do
		case $tool in
		cc) packages="$packages gcc libc6-dev" ;;
		promtool) packages="$packages prometheus" ;;
		nginx) packages="$packages nginx-light" ;;
		*) packages="$packages $tool" ;;
		esac
	done
	# Debian would start PgBouncer, Prometheus and nginx at their installation. The tests start their own.
	policy=/usr/sbin/policy-rc.d
	if [ ! -e $policy ]; then
		as_root sh -c "printf '#!/bin/sh\nexit 101\n' >$policy && chmod +x $policy"
		trap 'as_root rm -f $policy' EXIT
	fi
	as_root apt-get update -q
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $packages
elif [ "$(uname)" = Darwin ] && command -v brew >/dev/null; then
	case $lacking in *cc* | *make*)
		echo "make and the C compiler come with Xcode's tools: run xcode-select --install" >&2
		exit 1
		;;
	esac
	brew install pgbouncer prometheus nginx
fi

case $(missing) in
*cc*) echo "no C compiler found: install gcc or clang for the race detector, or run make test-short without it" >&2 && exit 1 ;;
*pgbouncer*) echo "PgBouncer is not installed: the tests skip TestThroughPgBouncer" ;;
*chromium*) echo "Chromium is not installed: the tests of the console's pages are skipped" ;;
*nginx*) echo "nginx is not installed: the tests skip TestBehindNginx" ;;
*prom*) echo "Prometheus is not installed: the tests skip TestAlertRules and TestAlertsFire" ;;
esac
