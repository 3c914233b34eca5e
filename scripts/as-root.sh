# as_root COMMAND… runs the command as root, or prints what to run as root. The other scripts source this file.
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
