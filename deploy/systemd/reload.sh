#!/bin/sh
# After an installation and a removal. An upgrade leaves the daemon as it is: the new one may want a newer schema.
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
