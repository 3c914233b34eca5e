#!/bin/sh
# Runs the given command, which looks for known vulnerabilities in the code that this code calls. Fails if it finds one. If
# the database of vulnerabilities cannot be reached, the script says so and succeeds.
set -u
out=$("$@" 2>&1)
status=$?
case $status:$out in
1:*"fetching vulnerabilities"*) echo "vuln: SKIPPED, the database of vulnerabilities cannot be reached" ;;
*) printf '%s\n' "$out" && exit $status ;;
esac
