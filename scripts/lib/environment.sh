# The virtual environment of this checkout: sourced by the scripts, which then call `environment [EXTRA]`.
#
# The environment is .venv in the checkout. What was installed is stamped with a hash of all that decides it, and the
# stamp is written last: an interrupted install is done again, and one that is up to date costs nothing and needs no
# network. Everything here writes to standard error, so that standard output is the command's own; what installers
# print goes to build/setup.log.

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }
fail() { say "$*"; exit 1; }

[ "$(uname -s)" = Linux ] ||
    fail "HPwsn needs Linux, and this is $(uname -s). Use a Linux machine, virtual machine, container or WSL"

# Settings of the caller's shell that would lead Python, pip or cd elsewhere, or turn assertions off.
unset CDPATH PYTHONHOME PYTHONPATH PYTHONSTARTUP PYTHONOPTIMIZE PYTHONWARNINGS PYTHONUSERBASE PYTHONEXECUTABLE \
    PIP_USER PIP_TARGET PIP_PREFIX PIP_ROOT PIP_CONSTRAINT PIP_REQUIREMENT PIP_NO_DEPS PIP_REQUIRE_VIRTUALENV \
    PIP_REQUIRE_HASHES PIP_DRY_RUN PIP_LOG
# Python keeps what it compiles of the checkout: else each process compiles some 200 modules, for half a second.
unset PYTHONDONTWRITEBYTECODE
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)"
VENV="$ROOT/.venv"
SETUP_LOG="$ROOT/build/setup.log"

source "$ROOT/scripts/lib/python.sh"
source "$ROOT/scripts/lib/packages.sh"

# step TEXT COMMAND...: says TEXT, keeps what COMMAND prints in the log, and shows the end of it where COMMAND fails.
step() {
    local text="$1" start
    shift
    mkdir -p "${SETUP_LOG%/*}"
    say "$text"
    printf '\n== %s\n' "$text" >>"$SETUP_LOG"
    start="$(wc -l <"$SETUP_LOG")"
    if "$@" >>"$SETUP_LOG" 2>&1; then return; fi
    tail -n +"$((start + 1))" "$SETUP_LOG" | tail -n 30 >&2
    say "that failed; all it printed is in $SETUP_LOG"
    return 1
}

# writable: the environment goes into the checkout, and another user may have begun it.
writable() {
    local path
    [ -w "$ROOT" ] || fail "the checkout $ROOT is read-only, and .venv goes there; use a copy that you can write to"
    for path in "$VENV" "$VENV.lock" "${SETUP_LOG%/*}" "$SETUP_LOG"; do
        [ ! -e "$path" ] || [ -w "$path" ] || fail "cannot write $path, perhaps another user's; remove it"
    done
}

# lock_file EXTRA: the versions and hashes that an install takes.
lock_file() { echo "$ROOT/scripts/locks/${1:-core}.txt"; }

# fingerprint EXTRA: all that decides what an install puts into the environment.
fingerprint() {
    {
        echo "$ROOT $1 $(head -n 3 "$VENV/pyvenv.cfg" 2>/dev/null)"
        cat "$(lock_file build)" "$(lock_file "$1")" "$ROOT/setup.cfg" "$ROOT/setup.py" "$ROOT/pyproject.toml" \
            "$ROOT/client/setup.cfg" "$ROOT/client/pyproject.toml"
        grep '^__version__' "$ROOT/client/hpwsn_client/__init__.py"
    } | sha256sum | cut -d ' ' -f 1
}

# installed EXTRA: whether that install is complete, up to date, and of the Python that PYTHON= names.
installed() {
    [ -x "$VENV/bin/python" ] && [ -x "$VENV/bin/hpwsn" ] &&
        [ "$(cat "$VENV/installed-${1:-core}" 2>/dev/null)" = "$(fingerprint "$1")" ] && right_python
}

# right_python: whether the environment's Python is supported and not another one than PYTHON= names.
right_python() {
    local named
    is_python "$VENV/bin/python" || return
    [ -n "${PYTHON:-}" ] || return 0
    named="$(named_python "$PYTHON")" && [ "$(build_of "$VENV/bin/python")" = "$(build_of "$named")" ]
}

# keepable: whether the environment was once complete, here (programs in it hold its path), and can be updated.
keepable() {
    compgen -G "$VENV/installed-*" >/dev/null && [ "$(cat "$VENV/checkout" 2>/dev/null)" = "$ROOT" ] &&
        right_python && "$VENV/bin/python" -m pip --version >/dev/null 2>&1
}

# apt_python: the newest supported Python that apt has, such as python3.13; python3 where apt does not say.
apt_python() {
    local version
    for version in $SUPPORTED_PYTHONS; do
        if apt-cache policy "python$version-venv" 2>/dev/null | grep -q 'Candidate: [0-9]'; then
            echo "python$version"
            return
        fi
    done
    echo python3
}

# require_python: a Python that can make virtual environments.
require_python() {
    local package
    choose_python
    if [ -z "$CHOSEN" ]; then
        package="$(apt_python)"
        say "found no Python of $SUPPORTED_PYTHONS"
        REQUIRED+=("$package" "$package-venv")
    elif ! can_make_venv "$CHOSEN"; then
        REQUIRED+=("python$(version_of "$CHOSEN")-venv")
    fi
}

# require_headers: what pip must find to compile those packages of the extra that have no ready-made wheel.
require_headers() {
    [ "$1" = dev ] || return 0
    require gcc libc6-dev libldap-dev libsasl2-dev -- has_header ldap.h sasl/sasl.h
    require gcc libc6-dev pkg-config libssl-dev -- has_header openssl/ssl.h
    # Debian has Python's headers in a package of their own; other interpreters bring theirs.
    [ -n "$CHOSEN" ] || { REQUIRED+=("$(apt_python)-dev"); return; }
    "$CHOSEN" -I -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' ||
        REQUIRED+=("python$(version_of "$CHOSEN")-dev")
}

# make_venv keeps an environment that can be updated; else it starts anew.
make_venv() {
    if keepable; then return; fi
    choose_python
    [ -n "$CHOSEN" ] || fail "found no Python of $SUPPORTED_PYTHONS; set PYTHON= to one"
    step "making ${VENV#"$ROOT"/} with $("$CHOSEN" --version) ($CHOSEN)" "$CHOSEN" -m venv --clear "$VENV" ||
        fail "$CHOSEN cannot make a virtual environment"
    echo "$ROOT" >"$VENV/checkout"
}

# PIP_USER overrides a pip.conf that sets `user`, with which pip refuses every virtual environment.
pip() { PIP_USER=0 "$VENV/bin/python" -m pip "$@"; }

# install_packages EXTRA: what builds packages comes first, pinned too, so that nothing is taken without a hash.
install_packages() {
    pip install --no-compile --require-hashes --requirement "$(lock_file build)" &&
        pip install --no-compile --require-hashes --no-build-isolation --requirement "$(lock_file "$1")"
}

install_checkout() {
    pip install --no-compile --no-deps --no-build-isolation --editable "$ROOT/client" --editable "$ROOT" &&
        # As pip does without --no-compile, but on all cores; what some packages carry for other Pythons does not compile.
        { "$VENV/bin/python" -m compileall -qq -j 0 "$VENV/lib" || true; }
}

fill_venv() {
    local extra="$1"
    writable
    make_venv
    rm -f "$VENV"/installed-*
    step "installing the packages of scripts/locks/${extra:-core}.txt (once; a minute or so)" install_packages "$extra" ||
        fail "run this again to retry"
    step "installing this checkout" install_checkout || fail "run this again to retry"
    [ -z "$extra" ] || fingerprint "" >"$VENV/installed-core"
    fingerprint "$extra" >"$VENV/installed-${extra:-core}"
}

# environment [EXTRA]: an environment with this checkout and the extra's packages, after all Debian packages that the
# script wants; two at once take turns.
environment() {
    local extra="${1:-}"
    if ! installed "$extra"; then
        writable
        require_python
        require_headers "$extra"
    fi
    install_missing
    mkdir -p "${VENV%/*}"
    installed "$extra" || (
        if command -v flock >/dev/null; then flock 9; fi
        installed "$extra" || fill_venv "$extra"
    ) 9>"$VENV.lock" || exit 1 # also where the caller tests the result, and -e is off
    say "$("$VENV/bin/python" --version) in ${VENV#"$ROOT"/}"
}
