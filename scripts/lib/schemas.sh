# The standard's own WSDL and schemas for the tests: sourced after environment.sh, then call `schemas`.
#
# OASIS publishes no package of its schemas; Apache CXF ships them inside one of its jars. They go to .schemas in the
# checkout. The stamp names the jar and is written last, so that an interrupted run is done again.

source "$ROOT/scripts/lib/maven.sh"

SCHEMAS="$ROOT/.schemas"
SCHEMAS_JAR="org.apache.cxf.services.wsn:cxf-services-wsn-api:4.1.5"
SCHEMAS_SHA256="0a8348a4fb097db0b323dc98d674cf717920ad144d90594ba52b35e0f829a6e3"
SCHEMAS_FILES=(b-2.xsd bf-2.xsd br-2.xsd brw-2.wsdl bw-2.wsdl r-2.xsd rp-2.xsd rpw-2.wsdl rw-2.wsdl t-1.xsd
    ws-addr.xsd xml.xsd)

has_schemas() { [ "$(cat "$SCHEMAS/fetched" 2>/dev/null)" = "$SCHEMAS_JAR $SCHEMAS_SHA256" ]; }

# want_schemas: says that Maven is wanted, unless the schemas are there.
want_schemas() { has_schemas || want_maven; }

# extract_schemas: the files of the standard out of the jar.
extract_schemas() {
    rm -rf "$SCHEMAS"
    mkdir "$SCHEMAS"
    "$VENV/bin/python" -c 'import sys, zipfile
jar, folder, *names = sys.argv[1:]
with zipfile.ZipFile(jar) as archive:
    for name in names:
        with open(f"{folder}/{name}", "wb") as file:
            file.write(archive.read(f"org/apache/cxf/wsn/wsdl/{name}"))' \
        "$(jar_file "$SCHEMAS_JAR")" "$SCHEMAS" "${SCHEMAS_FILES[@]}" ||
        fail "could not extract the schemas into $SCHEMAS; the lines above say why"
    echo "$SCHEMAS_JAR $SCHEMAS_SHA256" >"$SCHEMAS/fetched"
}

# schemas: the twelve files of WS-Notification, WS-ResourceFramework and WS-Addressing; two at once take turns.
schemas() {
    if has_schemas; then return; fi
    fetch_jar "$SCHEMAS_JAR" "$SCHEMAS_SHA256"
    (
        if command -v flock >/dev/null; then flock 9; fi
        if ! has_schemas; then extract_schemas; fi
    ) 9>"$ROOT/.venv.lock"
}
