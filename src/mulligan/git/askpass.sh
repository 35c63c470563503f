#!/bin/sh
# Started by git as GIT_ASKPASS; answers for one server only, wherever a redirect may lead.
scheme=$MULLIGAN_ASKPASS_SCHEME
host=$MULLIGAN_ASKPASS_HOST
case "$1" in
"Username for '$scheme://$host'"*) echo x-access-token ;;
"Password for '$scheme://x-access-token@$host'"*) cat "/proc/self/fd/$MULLIGAN_ASKPASS_FD" ;;
*) exit 1 ;;
esac
