# Programs on Apache CXF, a foreign client and a foreign broker: sourced after environment.sh, then call `cxf`.
#
# Maven builds tests/interop/cxf into folders `target` there and copies every jar beside the classes, so that the tests
# need neither Maven nor a network. Downloads stay in the user's own Maven repository (~/.m2), as Maven's settings say.
# The stamp holds a hash of the poms and sources and is written last, so that a build that was broken off is done again.

CXF="$ROOT/tests/interop/cxf"
CXF_STAMP="$CXF/target/built"

cxf_hash() {
    (cd "$CXF" && find . -path '*/target' -prune -o -type f \( -name pom.xml -o -name '*.java' \) -print0 |
        LC_ALL=C sort --zero-terminated | xargs --null sha256sum) | sha256sum | cut -d ' ' -f 1
}

has_cxf() { [ "$(cat "$CXF_STAMP" 2>/dev/null)" = "$(cxf_hash)" ]; }

build_cxf() {
    if has_cxf; then return; fi
    rm -rf "$CXF"/target "$CXF"/*/target
    mkdir "$CXF/target"
    # The locale is for paths with letters that the C locale does not have.
    step "building the programs on Apache CXF in tests/interop/cxf (once; 40 MB)" env LC_ALL=C.UTF-8 \
        mvn --batch-mode --no-transfer-progress --file "$CXF/pom.xml" \
        compiler:compile dependency:copy-dependencies || fail "run this again to retry"
    cxf_hash >"$CXF_STAMP"
}

# want_cxf: says that Maven and a Java compiler are wanted, unless the programs are built.
want_cxf() {
    if has_cxf; then return; fi
    want maven -- has_command mvn
    want default-jdk-headless -- has_command javac
}

# cxf: the two programs; two at once take turns. Without Maven, outside of CI, their tests are skipped.
cxf() {
    if has_cxf || ! has_command mvn >/dev/null || ! has_command javac >/dev/null; then return; fi
    (
        if command -v flock >/dev/null; then flock 9; fi
        build_cxf
    ) 9>"$ROOT/.venv.lock"
}
