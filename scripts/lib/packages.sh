# Debian packages that a script needs: sourced by environment.sh.
#
# A script first says all it needs, `require PACKAGE... -- TEST...` and `want PACKAGE... -- TEST...`, then calls
# `install_missing` once. TEST looks for the thing itself (a command, a header, a jar), so that systems other than
# Debian pass where they have it; dpkg and apt only name and install packages. Without what is required the script
# ends; without what is wanted it goes on, tests skip what they cannot run, and only CI ends.

REQUIRED=() WANTED=()

_split_and_test() {
    NAMES=()
    while [ "$1" != -- ]; do NAMES+=("$1"); shift; done
    shift
    "$@" >/dev/null 2>&1
}

require() { _split_and_test "$@" || REQUIRED+=("${NAMES[@]}"); }
want() { _split_and_test "$@" || WANTED+=("${NAMES[@]}"); }

# Servers' commands are in /usr/sbin, which is not on every user's PATH.
has_command() { PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin" command -v "$1"; }
has_file() { [ -e "$1" ]; }
has_header() { printf '#include <%s>\n' "$@" | "${CC:-gcc}" -E -; }

# has_java: Java 17 or later, which Spark and ActiveMQ need.
has_java() {
    local version
    version="$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)"
    [ "${version:-0}" -ge 17 ]
}

# as_root COMMAND...: runs it as root; by sudo where this is another user, if sudo asks for no password.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; return; fi
    command -v sudo >/dev/null && sudo -n "$@"
}

may_be_root() { [ "$(id -u)" -eq 0 ] || as_root true >/dev/null 2>&1; }

# apt COMMAND...: waits for another apt instead of failing beside it.
apt() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 -y -qq "$@"; }

apt_install() {
    apt update || echo "apt-get update failed; trying with the package lists there are"
    apt install --no-install-recommends "$@"
}

# apt_each PACKAGE...: one after the other, so that a package that this release lacks does not keep the others away;
# sets REQUIRED and WANTED to what could not be installed.
apt_each() {
    local package required=" ${REQUIRED[*]} "
    REQUIRED=() WANTED=()
    for package in "$@"; do
        if apt install --no-install-recommends "$package" >>"$SETUP_LOG" 2>&1; then continue; fi
        case "$required" in *" $package "*) REQUIRED+=("$package") ;; *) WANTED+=("$package") ;; esac
    done
}

# install_missing: one call of apt for everything, or one line that says what root has to run.
install_missing() {
    local all=("${REQUIRED[@]}" "${WANTED[@]}")
    [ ${#all[@]} -gt 0 ] || return 0
    mapfile -t all < <(printf '%s\n' "${all[@]}" | sort -u)
    if ! command -v apt-get >/dev/null; then
        say "needs what Debian calls ${all[*]}; install what this system calls them"
    elif ! may_be_root; then
        say "needs root once: apt-get install ${all[*]}"
    elif step "installing ${all[*]}" apt_install "${all[@]}"; then
        REQUIRED=() WANTED=()
        return
    else
        apt_each "${all[@]}"
        all=("${REQUIRED[@]}" "${WANTED[@]}")
        [ ${#all[@]} -gt 0 ] || return 0
        say "could not install ${all[*]}; as root try: apt-get install ${all[*]}"
    fi
    [ ${#REQUIRED[@]} -eq 0 ] || fail "cannot go on without ${REQUIRED[*]}"
    [ "${CI:-}" != true ] || fail "in CI nothing may be missing"
    say "going on without ${WANTED[*]}; tests that need them are skipped"
    WANTED=()
}
