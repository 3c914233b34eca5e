#!/usr/bin/env bash
# Makes the archives of a release in dist/, and their checksums. The archive of a platform holds the static binary, its man
# pages, its bill of materials (CycloneDX) and the licences of all modules that are compiled into it.
#
#   scripts/dist.sh VERSION [OS/ARCH ...]      default: Linux and macOS, amd64 and arm64
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:?a version is needed}
shift
[ $# -gt 0 ] || set -- linux/amd64 linux/arm64 darwin/amd64 darwin/arm64

rm -rf dist
mkdir -p dist
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd scripts/sbom && go build -o "$work/sbom" .)
mkdir "$work/man"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) go run -tags man -ldflags "-X main.version=$version" ./cmd/tidemark man "$work/man"

# licenses BINARY FOLDER copies the licences and notices of the modules that are compiled into the binary. A module without
# a licence is an error: it must not be distributed.
licenses() {
	local module dir files file
	for module in std $(go version -m "$1" | awk '$1 == "dep" {print $2}'); do
		if [ "$module" = std ]; then dir=$(go env GOROOT); else dir=$(go list -m -f '{{.Dir}}' "$module"); fi
		files=$(cd "$dir" && find . -maxdepth $([ "$module" = std ] && echo 1 || echo 4) -type f \
			\( -iname 'licen[sc]e*' -o -iname 'copying*' -o -iname 'notice*' -o -iname 'patents*' \) ! -name '*.go')
		[ -n "$files" ] || { echo "dist.sh: $module has no licence" >&2; exit 1; }
		for file in $files; do
			mkdir -p "$2/$module/$(dirname "$file")"
			cp "$dir/$file" "$2/$module/$file"
		done
	done
}

for platform in "$@"; do
	name=tidemark_${version#v}_${platform/\//_}
	stage=$work/$name
	mkdir "$stage"
	export GOOS=${platform%/*} GOARCH=${platform#*/} CGO_ENABLED=0
	go build -trimpath -ldflags "-s -w -X main.version=$version" -o "$stage/tidemark" ./cmd/tidemark
	"$work/sbom" "$stage/tidemark" "$version" >"$stage/tidemark.cdx.json"
	licenses "$stage/tidemark" "$stage/licenses"
	chmod -R u+w "$stage"
	cp LICENSE README.md CHANGELOG.md "$stage/"
	cp -r "$work/man" "$stage/man"
	tar -C "$work" -czf "dist/$name.tar.gz" "$name"
	echo "dist/$name.tar.gz"
done
cd dist
if command -v sha256sum >/dev/null; then sha256sum -- *.tar.gz; else shasum -a 256 -- *.tar.gz; fi >SHA256SUMS
