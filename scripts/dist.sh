#!/usr/bin/env bash
# Makes in .release/ what a release holds beside the binaries; .goreleaser.yaml calls it.
#
#   scripts/dist.sh before VERSION TIME               man pages, dated TIME (seconds since 1970), and shell completions
#   scripts/dist.sh binary VERSION OS ARCH BINARY     a binary's bill of materials (CycloneDX), and the licences of all
#                                                     modules that are compiled into it
set -euo pipefail
cd "$(dirname "$0")/.."

before() {
	local version=$1 SOURCE_DATE_EPOCH=$2
	export SOURCE_DATE_EPOCH
	rm -rf .release
	mkdir -p .release/man .release/completions
	(cd scripts/sbom && go build -o ../../.release/sbom .)
	go run -tags man -ldflags "-X main.version=$version" ./cmd/tidemark man .release/man
	gzip -9 --no-name .release/man/*.1
	go build -o .release/host ./cmd/tidemark
	.release/host completion bash >.release/completions/tidemark.bash
	.release/host completion zsh >.release/completions/_tidemark
	.release/host completion fish >.release/completions/tidemark.fish
	rm .release/host
}

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
			install -m 644 "$dir/$file" "$2/$module/$file"
		done
	done
}

binary() {
	local version=$1 to=.release/$2_$3 path=$4
	rm -rf "$to"
	mkdir -p "$to"
	.release/sbom "$path" "$version" >"$to/tidemark.cdx.json"
	licenses "$path" "$to/licenses"
}

case ${1:-} in
before | binary) "$@" ;;
*) echo "usage: dist.sh before VERSION TIME | binary VERSION OS ARCH BINARY" >&2; exit 2 ;;
esac
