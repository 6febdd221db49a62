# Foreign clients that Python's installer does not bring: sourced after environment.sh, then call `interop`.
#
# They go to node_modules beside the script that uses them. The stamp holds a hash of the lock file and is written
# last, so that an install that was broken off is done again, and a second run needs no network.

CLIENTS="$ROOT/tests/interop/node"
CLIENTS_STAMP="$CLIENTS/node_modules/installed"

lock_hash() { sha256sum <"$CLIENTS/package-lock.json" | cut -d ' ' -f 1; }

has_clients() { [ "$(cat "$CLIENTS_STAMP" 2>/dev/null)" = "$(lock_hash)" ]; }

install_clients() {
    if has_clients; then return; fi
    step "installing the npm soap client into tests/interop/node (once)" \
        npm ci --prefix "$CLIENTS" --no-audit --no-fund --ignore-scripts || fail "run this again to retry"
    lock_hash >"$CLIENTS_STAMP"
}

# want_interop: says that Node.js is wanted, and npm unless the clients are there.
want_interop() {
    want nodejs -- has_command node
    has_clients || want npm -- has_command npm
}

# interop: the clients in the versions of the lock file; two at once take turns. Without npm their tests are skipped.
interop() {
    if has_clients || ! has_command npm >/dev/null; then return; fi
    (
        if command -v flock >/dev/null; then flock 9; fi
        install_clients
    ) 9>"$ROOT/.venv.lock"
}
