#!/bin/sh
# Started by git as GIT_ASKPASS; answers for one server only, wherever a redirect may lead.
case "$1" in
"Password for '$MULLIGAN_ASKPASS_URL'"*) exec cat "/proc/self/fd/$MULLIGAN_ASKPASS_FD" ;;
esac
exit 1
