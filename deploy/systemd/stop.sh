#!/bin/sh
# Before a removal, which dpkg calls "remove" and rpm 0.
case $1 in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now tidemark.service
	fi
	;;
esac
