# Makes a minimal Debian in a chroot, which is removed when the script ends; the scripts that need one source this file.
#
#   chroot_make         makes it, in $root
#   inside COMMAND…     runs a command in it, with a clean environment, except for the variables of the network
#
# Needs root, Debian or a derivative of it, and debootstrap. Debian's mirror, apt's connection settings and Go's proxy are those of
# this machine. SUITE chooses another release.

step() { echo "==> [${SECONDS}s] $*"; }

chroot_clean() {
	local mount
	for mount in dev proc; do
		if mountpoint -q "$root/$mount"; then umount -R --lazy "$root/$mount"; fi # lazy: a process in the chroot may still run
	done
	rm -rf --one-file-system "$root"
}

chroot_make() {
	local tool suite mirror
	for tool in debootstrap git go; do
		command -v $tool >/dev/null || { echo "$0: $tool is not installed" >&2; exit 1; }
	done
	[ "$(id -u)" -eq 0 ] || { echo "$0: only root may chroot" >&2; exit 1; }
	suite=${SUITE:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
	mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' "Codename: $suite" | head -n 1)
	[ -n "$mirror" ] || { echo "$0: apt knows no mirror of $suite: run apt-get update" >&2; exit 1; }

	root=$(mktemp -d "${TMPDIR:-/var/tmp}/tidemark-bare.XXXXXX")
	chmod 755 "$root" # other users need access too
	trap chroot_clean EXIT

	step "Debian $suite, minimal"
	debootstrap --variant=minbase "$suite" "$root" "$mirror"
	mount -t proc proc "$root/proc"
	mount --rbind /dev "$root/dev"
	mount --make-rslave "$root/dev"
	cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
	rm -rf "$root/etc/apt/sources.list.d"
	cp -a /etc/apt/sources.list /etc/apt/sources.list.d "$root/etc/apt/" 2>/dev/null || true
	apt-config dump | grep -E '^Acquire::(http|https|ftp|Check-|Retries|AllowInsecure)' >"$root/etc/apt/apt.conf.d/99bare" || true
	if [ -d /usr/local/share/ca-certificates ]; then
		mkdir -p "$root/usr/local/share" && cp -a /usr/local/share/ca-certificates "$root/usr/local/share/"
	fi
}

inside() {
	local pass=(HOME=/root PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8)
	local name
	for name in GOPROXY GOSUMDB GONOSUMDB GONOPROXY GOPRIVATE; do
		pass+=("$name=$(go env $name)")
	done
	for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
		[ -z "${!name:-}" ] || pass+=("$name=${!name}")
	done
	chroot "$root" /usr/bin/env -i "${pass[@]}" "$@"
}
