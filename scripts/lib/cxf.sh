# Programs on Apache CXF, a foreign client and a foreign broker: sourced after environment.sh, then call `cxf`.
#
# Maven builds tests/interop/cxf into folders `target` there and copies every jar beside the classes, so that the tests
# need neither Maven nor a network. Downloads stay in the user's own Maven repository (~/.m2), as Maven's settings say.
# The stamp holds a hash of the poms and sources and is written last, so that a build that was broken off is done again.

CXF="$ROOT/tests/interop/cxf"

cxf_hash() {
    (cd "$CXF" && find . -path '*/target' -prune -o -type f \( -name pom.xml -o -name '*.java' \) -print0 |
        LC_ALL=C sort --zero-terminated | xargs --null sha256sum) | sha256sum | cut -d ' ' -f 1
}

build_cxf() {
    local stamp="$CXF/target/built" log="$CXF/target/build.log"
    [ "$(cat "$stamp" 2>/dev/null)" != "$(cxf_hash)" ] || return 0
    say "building the programs on Apache CXF in tests/interop/cxf (once; 40 MB)"
    rm -rf "$CXF"/target "$CXF"/*/target
    mkdir "$CXF/target"
    # For paths with letters that the C locale does not have.
    LC_ALL=C.UTF-8 mvn --batch-mode --no-transfer-progress --file "$CXF/pom.xml" \
        compiler:compile dependency:copy-dependencies >"$log" 2>&1 || {
        cat "$log" >&2
        fail "Maven could not build tests/interop/cxf; the lines above say why. Run this again to retry"
    }
    cxf_hash >"$stamp"
}

# cxf: Maven, a Java compiler, and the two programs; two at once take turns.
cxf() {
    command -v mvn >/dev/null || need_apt maven
    command -v javac >/dev/null || need_apt default-jdk-headless
    (
        if command -v flock >/dev/null; then flock 9; fi
        build_cxf
    ) 9>"$ROOT/.venv.lock"
}
