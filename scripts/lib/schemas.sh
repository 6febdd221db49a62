# The standard's own WSDL and schemas for the tests: sourced after environment.sh, then call `schemas`.
#
# OASIS publishes no package of its schemas; Apache CXF ships them inside one of its jars, which Maven gets. They go
# to .schemas in the checkout. The stamp names the jar and is written last, so that a fetch that was broken off is
# done again, and a second run needs neither Maven nor a network.

SCHEMAS="$ROOT/.schemas"
SCHEMAS_JAR="org.apache.cxf.services.wsn:cxf-services-wsn-api:4.1.5"
SCHEMAS_SHA256="0a8348a4fb097db0b323dc98d674cf717920ad144d90594ba52b35e0f829a6e3"
SCHEMAS_PLUGIN="org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
SCHEMAS_FILES=(b-2.xsd bf-2.xsd br-2.xsd brw-2.wsdl bw-2.wsdl r-2.xsd rp-2.xsd rpw-2.wsdl rw-2.wsdl t-1.xsd
    ws-addr.xsd xml.xsd)

schemas_fetched() { [ "$(cat "$SCHEMAS/fetched" 2>/dev/null)" = "$SCHEMAS_JAR $SCHEMAS_SHA256" ]; }

# download_schemas FOLDER: the jar, into a folder, with the checksum that is pinned here.
download_schemas() {
    local found output
    # Without a terminal Maven still writes codes for colours, so its words are kept for when they are needed.
    output="$(mvn --batch-mode --quiet "$SCHEMAS_PLUGIN:copy" "-Dartifact=$SCHEMAS_JAR" \
        "-DoutputDirectory=$1" -Dmdep.stripVersion=true 2>&1)" || {
        printf '%s\n' "$output" >&2
        fail "Maven could not get $SCHEMAS_JAR; the lines above say why. Run this again to retry"
    }
    found="$(sha256sum <"$1/cxf-services-wsn-api.jar" | cut -d ' ' -f 1)"
    [ "$found" = "$SCHEMAS_SHA256" ] ||
        fail "$SCHEMAS_JAR has the SHA-256 $found, not $SCHEMAS_SHA256: nothing of it is used." \
            "Remove it from Maven's local repository and run this again"
}

# extract_schemas FOLDER: the files of the standard out of the jar in that folder, into .schemas.
extract_schemas() {
    "$VENV/bin/python" -c 'import sys, zipfile
jar, folder, *names = sys.argv[1:]
with zipfile.ZipFile(jar) as archive:
    for name in names:
        with open(f"{folder}/{name}", "wb") as file:
            file.write(archive.read(f"org/apache/cxf/wsn/wsdl/{name}"))' \
        "$1/cxf-services-wsn-api.jar" "$SCHEMAS" "${SCHEMAS_FILES[@]}" ||
        fail "could not extract the schemas into $SCHEMAS; the lines above say why"
    echo "$SCHEMAS_JAR $SCHEMAS_SHA256" >"$SCHEMAS/fetched"
}

# fetch_schemas: run in a subshell, and not behind `||`, where a failing command would be passed over.
fetch_schemas() {
    say "fetching the OASIS schemas into .schemas with Maven (once)"
    rm -rf "$SCHEMAS"
    mkdir "$SCHEMAS"
    # Whatever becomes of this run, the jar does not stay. A trap sees no local variables; this is a subshell.
    SCHEMAS_DOWNLOAD="$(mktemp --directory)"
    trap 'rm -rf "$SCHEMAS_DOWNLOAD"' EXIT
    download_schemas "$SCHEMAS_DOWNLOAD"
    extract_schemas "$SCHEMAS_DOWNLOAD"
}

# want_schemas: says that Maven is wanted, unless the schemas are there.
want_schemas() { schemas_fetched || want maven -- has_command mvn; }

# schemas: the twelve files of WS-Notification, WS-ResourceFramework and WS-Addressing; two at once take turns.
schemas() {
    schemas_fetched && return
    # Outside of CI install_missing went on without Maven, and tests that need the schemas are skipped.
    command -v mvn >/dev/null || return 0
    (
        if command -v flock >/dev/null; then flock 9; fi
        if ! schemas_fetched; then fetch_schemas; fi
    ) 9>"$ROOT/.venv.lock"
}
