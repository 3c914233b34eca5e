# as_root COMMAND…: runs it as root, or says what to run. For the other scripts to source.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		echo "neither root nor sudo: run as root: $*" >&2
		return 1
	fi
}
