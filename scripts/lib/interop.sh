# Foreign clients that Python's installer does not bring: sourced after environment.sh, then call `interop`.
#
# They go to node_modules beside the script that uses them. The stamp holds a hash of the lock file and is written
# last, so that an install that was broken off is done again, and a second run needs no network.

CLIENTS="$ROOT/tests/interop/node"

lock_hash() { sha256sum <"$CLIENTS/package-lock.json" | cut -d ' ' -f 1; }

install_clients() {
    local stamp="$CLIENTS/node_modules/installed"
    [ "$(cat "$stamp" 2>/dev/null)" != "$(lock_hash)" ] || return 0
    step "installing the npm soap client into tests/interop/node (once)" \
        npm ci --prefix "$CLIENTS" --no-audit --no-fund --ignore-scripts || fail "run this again to retry"
    lock_hash >"$stamp"
}

# want_interop: says that Node.js and npm are wanted.
want_interop() {
    want nodejs -- has_command node
    want npm -- has_command npm
}

# interop: the clients in the versions of the lock file; two at once take turns. Without npm their tests are skipped.
interop() {
    has_command npm >/dev/null || return 0
    (
        if command -v flock >/dev/null; then flock 9; fi
        install_clients
    ) 9>"$ROOT/.venv.lock"
}
