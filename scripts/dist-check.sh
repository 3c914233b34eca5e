#!/usr/bin/env bash
# Checks a release before it is made: the same commit gives the same files, whatever the folder and the caches; the packages hold
# what they should; and a newcomer gets from the package to an event at a webhook (newcomer.sh, which needs root).
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "dist-check.sh: $*" >&2; exit 1; }
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

commit=$(git rev-parse HEAD)

# build FOLDER makes a release of a clone there, and its checksums beside it.
build() {
	git clone -q . "$work/$1"
	git -C "$work/$1" checkout -q "$commit"
	(cd "$work/$1" && make -s dist image VERSION=v0.0.0)
	(cd "$work/$1/dist" && sha256sum ./*.tar.gz ./*.deb ./*.rpm image/blobs/sha256/*) >"$work/${1%%/*}.sums"
}
build one/tidemark
GOCACHE=$work/cache build another/place # without what was compiled before
diff "$work/one.sums" "$work/another.sums" || fail "the same commit gives different files"
rm -rf dist
cp -r "$work/one/tidemark/dist" dist

(cd dist && sha256sum --quiet -c SHA256SUMS)
for os in linux darwin; do
	for arch in amd64 arm64; do
		archive=$(echo dist/tidemark_*_"${os}_$arch".tar.gz)
		tar -tzf "$archive" >"$work/list"
		for file in tidemark tidemark.cdx.json LICENSE CHANGELOG.md man/tidemark-run.1.gz completions/tidemark.bash licenses/std/LICENSE \
			licenses/github.com/jackc/pgx/v5/LICENSE; do
			grep -qx "$file" "$work/list" || fail "$archive lacks $file"
		done
	done
done
go version -m dist/tidemark_linux_amd64*/tidemark | grep -q 'CGO_ENABLED=0' || fail "the binary is not static"
[ -s dist/homebrew/Casks/tidemark.rb ] || fail "no cask"
for arch in amd64 arm64; do
	dpkg-deb --contents dist/tidemark_*_$arch.deb >"$work/list"
	for file in usr/bin/tidemark etc/tidemark/tidemark.yaml usr/lib/systemd/system/tidemark.service usr/share/doc/tidemark/tidemark.cdx.json; do
		grep -q " \./$file\$" "$work/list" || fail "the deb for $arch lacks $file"
	done
	dpkg-deb --info dist/tidemark_*_$arch.deb conffiles | grep -q /etc/tidemark/tidemark.env || fail "the deb would overwrite its configuration"
done

if [ "$(id -u)" -eq 0 ]; then
	scripts/newcomer.sh dist/tidemark_*_"$(dpkg --print-architecture)".deb
else
	echo "dist-check.sh: the package was not installed: only root may chroot" >&2
fi
echo "the release is sound"
