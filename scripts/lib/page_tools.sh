# What checks and tests of the page need from npm, ESLint and axe-core: sourced after environment.sh, then call
# `want_page_tools` before `environment` and `page_tools` after it. A node needs none of it.
#
# They go to node_modules in scripts/page-tools. The stamp holds a hash of the lock file and is written last, so that
# an install that was broken off is done again, and a second run needs no network.

PAGE_TOOLS="$ROOT/scripts/page-tools"
PAGE_TOOLS_STAMP="$PAGE_TOOLS/node_modules/installed"

page_tools_hash() { sha256sum <"$PAGE_TOOLS/package-lock.json" | cut -d ' ' -f 1; }

has_page_tools() { [ "$(cat "$PAGE_TOOLS_STAMP" 2>/dev/null)" = "$(page_tools_hash)" ]; }

# has_node: a Node.js that ESLint runs on; that of Debian 12 is older.
has_node() { node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)'; }

# want_page_tools: says that Node.js is wanted, and npm unless the tools are there.
want_page_tools() {
    want nodejs -- has_command node
    has_page_tools || want npm -- has_command npm
}

# page_tools: the tools in the versions of the lock file; two at once take turns. Does nothing without npm.
page_tools() {
    if has_page_tools || ! has_command npm >/dev/null; then return; fi
    (
        if command -v flock >/dev/null; then flock 9; fi
        has_page_tools || install_page_tools
    ) 9>"$ROOT/.venv.lock"
}

install_page_tools() {
    step "installing ESLint and axe-core into scripts/page-tools (once)" \
        npm ci --prefix "$PAGE_TOOLS" --no-audit --no-fund --ignore-scripts || fail "run this again to retry"
    page_tools_hash >"$PAGE_TOOLS_STAMP"
}

# lint_page [--fix]: ESLint over the page's own JavaScript.
lint_page() {
    "$PAGE_TOOLS/node_modules/.bin/eslint" --config "$PAGE_TOOLS/eslint.config.js" "$@" "$ROOT/hpwsn/page/static/app"
}
