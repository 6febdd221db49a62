# Which Python the scripts use: sourced by environment.sh.
#
# `PYTHON=` names a command, a path or a version (3.13). Without it the newest supported one on PATH is taken, then
# those that pyenv keeps without having them on PATH. Free-threaded builds are used only when named.

# Newest first; tests/unit/test_distribution.py compares them with setup.cfg.
SUPPORTED_PYTHONS="3.14 3.13 3.12 3.11"

# is_python COMMAND [VERSION]: whether COMMAND runs, is supported, and has that version (such as 3.13).
is_python() {
    "$1" -I -c 'import sys
version = "%d.%d" % sys.version_info[:2]
sys.exit(version not in sys.argv[1].split() or version != (sys.argv[2] or version))' \
        "$SUPPORTED_PYTHONS" "${2:-}" 2>/dev/null
}

# version_of COMMAND: its version, such as 3.13.
version_of() { "$1" -I -c 'import sys; print("%d.%d" % sys.version_info[:2])'; }

# build_of COMMAND: its version, with a t where it is free-threaded.
build_of() { "$1" -I -c 'import sys; print("%d.%d" % sys.version_info[:2] + sys.abiflags)'; }

is_free_threaded() { "$1" -I -c 'import sysconfig, sys; sys.exit(not sysconfig.get_config_var("Py_GIL_DISABLED"))'; }

# can_make_venv COMMAND: Debian keeps ensurepip in a package of its own.
can_make_venv() { "$1" -I -c 'import ensurepip, venv' 2>/dev/null; }

# path_pythons VERSION: every command on PATH that may be that version.
path_pythons() { type -aP "python$1" python3 || true; }

# pyenv_pythons VERSION: the interpreters of that version that pyenv keeps, newest first.
pyenv_pythons() {
    local root="${PYENV_ROOT:-$HOME/.pyenv}"
    printf '%s\n' "$root/versions/$1".*/bin/python | sort --version-sort --reverse
}

# first_python VERSION FINDER: the first of FINDER's commands that is that version; prefers one that can make a venv.
first_python() {
    local candidate found=""
    while IFS= read -r candidate; do
        is_python "$candidate" "$1" && ! is_free_threaded "$candidate" || continue
        if can_make_venv "$candidate"; then echo "$candidate"; return; fi
        found="${found:-$candidate}"
    done < <("$2" "$1")
    [ -n "$found" ] && echo "$found"
}

# every_python: one interpreter for each supported version on this machine, newest first.
every_python() {
    local version
    for version in $SUPPORTED_PYTHONS; do
        first_python "$version" path_pythons || first_python "$version" pyenv_pythons || true
    done
}

# newest_python: the newest on PATH that can make a venv, else the newest on PATH, else the newest of pyenv.
newest_python() {
    local version candidate found=""
    for version in $SUPPORTED_PYTHONS; do
        candidate="$(first_python "$version" path_pythons)" || continue
        if can_make_venv "$candidate"; then echo "$candidate"; return; fi
        found="${found:-$candidate}"
    done
    if [ -n "$found" ]; then echo "$found"; return; fi
    for version in $SUPPORTED_PYTHONS; do
        first_python "$version" pyenv_pythons && return
    done
    return 1
}

# named_python NAME: the interpreter that PYTHON=NAME means.
named_python() {
    local version="${1#python}"
    if is_python "$1"; then echo "$1"; return; fi
    case " $SUPPORTED_PYTHONS " in *" $version "*) ;; *) return 1 ;; esac
    first_python "$version" path_pythons || first_python "$version" pyenv_pythons
}

# choose_python sets CHOSEN to the interpreter that a new environment is made with; empty where apt has to bring one.
choose_python() {
    CHOSEN=""
    if [ -n "${PYTHON:-}" ]; then
        CHOSEN="$(named_python "$PYTHON")" ||
            fail "PYTHON=$PYTHON is not a supported Python; name one of $SUPPORTED_PYTHONS, or its command"
    else
        CHOSEN="$(newest_python)" || true
    fi
}
