# What the lines of docs/operating.md find in a test, where they would change a machine. Sourced
# by bash; $HERE is the directory that stands for /, $BIN has the programs of this Python.

sudo() {
    if [ "$1" = -u ]; then
        [ "$2" = mulligan ] || return 1
        shift 2
    fi
    "$@"
}

useradd() {
    # What makes the directory later is the unit.
    [ "${!#}" = mulligan ] && mkdir -p "$HERE/var/lib/mulligan"
}

install() {
    local kept=()
    while [ $# -gt 0 ]; do
        case "$1" in
        -o) shift 2 ;; # only root may give a file away
        *) kept+=("$1") && shift ;;
        esac
    done
    command install "${kept[@]}"
}

python3() {
    if [ "$1" = -m ] && [ "$2" = venv ]; then
        mkdir -p "$3/bin"
        ln -s "$BIN/mulligan" "$3/bin/mulligan"
        printf '#!/bin/sh\nexec %s/python -m pip "$@" --dry-run --no-index --no-build-isolation\n' \
            "$BIN" > "$3/bin/pip"
        chmod +x "$3/bin/pip"
    else
        command python3 "$@"
    fi
}

systemctl() {
    [ -f "$HERE/etc/systemd/system/mulligan.service" ] || return 1
    case "$*" in
    "enable --now mulligan" | "start mulligan")
        command install -D -m 400 "$HERE/etc/mulligan/github-token" \
            "$HERE/run/credentials/mulligan.service/github-token"
        ;;
    "stop mulligan") rm -f "$HERE/run/credentials/mulligan.service/github-token" ;;
    *) return 1 ;;
    esac
}

systemd-run() {
    while [[ "$1" = --* ]]; do shift; done
    "$@"
}

journalctl() {
    [ "$*" = "-u mulligan -f" ]
}

git() {
    [ "$*" = pull ]
}

docker() {
    case "$1 $2" in
    "build -f") [ -f "$3" ] && [ "$4 $5 $6" = "-t mulligan:local ." ] ;;
    "run --rm") [ "$3" = mulligan:local ] && "$BIN/mulligan" "${@:4}" ;;
    compose\ *)
        [ -f compose.yml ] || cd deploy/compose
        shift
        compose "$@"
        ;;
    *) return 1 ;;
    esac
}

compose() {
    case "$*" in
    "up --build --detach")
        command install -D -m 400 github-token "$HERE/run/secrets/github-token"
        ;;
    "exec worker "*) MULLIGAN_CONFIG=$PWD/config/mulligan.yml "$BIN/${3}" "${@:4}" ;;
    "logs --follow" | stop) ;;
    *) return 1 ;;
    esac
}
