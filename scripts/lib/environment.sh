# The virtual environment of this checkout: sourced by the scripts, which then call `environment [EXTRA]`.
#
# The environment is .venv in the checkout. What was installed is stamped with a hash of all that decides it, and the
# stamp is written last: an install that was broken off is done again, and one that is up to date costs nothing and
# needs no network. Everything here writes to standard error, so that standard output is the command's own.

# Python keeps what it compiles of the checkout: else each process compiles some 200 modules, for half a second.
unset PYTHONDONTWRITEBYTECODE

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)"
VENV="$ROOT/.venv"

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }
fail() { say "$*"; exit 1; }

# need_apt PACKAGE... installs those Debian packages that are missing.
need_apt() {
    local package missing=() sudo=()
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null || fail "needs ${missing[*]}; install what this system calls them, then run this again"
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || fail "needs ${missing[*]}; run as root: apt-get install ${missing[*]}"
        sudo=(sudo)
    fi
    say "installing ${missing[*]}"
    "${sudo[@]}" apt-get update -qq >&2 || say "apt-get update failed; trying with the package lists there are"
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2 ||
        fail "could not install ${missing[*]}; the lines above say why"
}

# is_python COMMAND: Spyne, which the node builds on, does not import on Python 3.12 and later.
is_python() { "$1" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; }

# find_python sets PYTHON to a Python 3.11 that can make virtual environments.
find_python() {
    local candidate
    for candidate in python3.11 python3 /usr/bin/python3.11; do
        if is_python "$candidate"; then PYTHON="$candidate"; break; fi
    done
    if [ -z "${PYTHON:-}" ]; then
        say "found no Python 3.11"
        need_apt python3.11 python3.11-venv
        PYTHON=python3.11
    fi
    "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null || need_apt python3.11-venv
}

# fingerprint EXTRA: all that decides what an install puts into the environment.
fingerprint() {
    {
        echo "$ROOT $1"
        cat "$ROOT/setup.cfg" "$ROOT/setup.py" "$ROOT/pyproject.toml" "$ROOT/client/setup.cfg" "$ROOT/client/pyproject.toml"
        cat "$ROOT/scripts/locks/build.txt" "$ROOT/scripts/locks/${1:-core}.txt"
        grep '^__version__' "$ROOT/client/hpwsn_client/__init__.py"
    } | sha256sum | cut -d ' ' -f 1
}

# installed EXTRA: whether that install is complete and up to date.
installed() {
    [ -x "$VENV/bin/python" ] && [ -x "$VENV/bin/hpwsn" ] &&
        [ "$(cat "$VENV/installed-${1:-core}" 2>/dev/null)" = "$(fingerprint "$1")" ]
}

# make_venv keeps an environment that was once complete, here, since programs in it hold its path; else it starts anew.
make_venv() {
    if compgen -G "$VENV/installed-*" >/dev/null && [ "$(cat "$VENV/checkout" 2>/dev/null)" = "$ROOT" ] &&
        is_python "$VENV/bin/python" && "$VENV/bin/python" -m pip --version >/dev/null 2>&1; then
        return
    fi
    local PYTHON=""
    find_python
    say "making $VENV with $("$PYTHON" --version)"
    "$PYTHON" -m venv --clear "$VENV" || fail "$PYTHON cannot make a virtual environment; install python3.11-venv"
    echo "$ROOT" >"$VENV/checkout"
}

# need_for EXTRA installs what pip must find before it can build python-ldap, which has no ready-made package.
need_for() {
    case "$1" in dev | ldap) ;; *) return 0 ;; esac
    "$VENV/bin/python" -c 'import ldap' 2>/dev/null && return
    need_apt gcc libc6-dev libldap2-dev libsasl2-dev
    # Debian has Python's headers in a package of their own; other interpreters bring theirs.
    "$VENV/bin/python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' || need_apt python3.11-dev
}

pip_install() { "$VENV/bin/python" -m pip install --disable-pip-version-check --no-compile "$@"; }

install_checkout() {
    local extra="$1" locks="$ROOT/scripts/locks"
    make_venv
    need_for "$extra"
    rm -f "$VENV"/installed-*
    say "installing hpwsn${extra:+[$extra]} into .venv (once; a minute or so)"
    # All in the versions of the locks; what has no wheel is built with the locked setuptools too.
    {
        pip_install --require-hashes --requirement "$locks/build.txt" &&
            pip_install --no-build-isolation --require-hashes --requirement "$locks/${extra:-core}.txt" &&
            pip_install --no-build-isolation --no-deps --editable "$ROOT/client" --editable "$ROOT"
    } >&2 || fail "the installation failed; the lines above say why. Run this again to retry"
    # As pip does without --no-compile, but on all cores; what some packages carry for other Pythons does not compile.
    "$VENV/bin/python" -m compileall -qq -j 0 "$VENV/lib" || true
    [ -z "$extra" ] || fingerprint "" >"$VENV/installed-core"
    fingerprint "$extra" >"$VENV/installed-${extra:-core}"
}

# environment [EXTRA]: an environment with this checkout and the extra's packages; two at once take turns.
environment() {
    local extra="${1:-}"
    installed "$extra" && return
    (
        if command -v flock >/dev/null; then flock 9; fi
        installed "$extra" || install_checkout "$extra"
    ) 9>"$ROOT/.venv.lock"
}
