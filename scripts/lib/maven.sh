# Jars that Maven gets: sourced after environment.sh.
#
# They are kept in .jars of the checkout, each with the SHA-256 that its user pins, so that a second run needs neither
# Maven nor a network.

JARS="$ROOT/.jars"
MAVEN_COPY="org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"

# jar_file ARTIFACT: where GROUP:NAME:VERSION is kept.
jar_file() {
    local name="${1#*:}"
    echo "$JARS/${name/:/-}.jar"
}

has_jar() { sha256sum --check --status <<<"$2  $(jar_file "$1")" 2>/dev/null; }

want_maven() { want maven -- has_command mvn; }

# In the folder itself: Maven reads a pom.xml of the current one.
maven_copy() (
    cd "$2"
    mvn --batch-mode --no-transfer-progress "$MAVEN_COPY" "-Dartifact=$1" "-DoutputDirectory=$2" </dev/null
)

download_jar() {
    local artifact="$1" sum="$2" folder="$3" file found
    file="$folder/$(basename "$(jar_file "$artifact")")"
    step "fetching $artifact with Maven (once)" maven_copy "$artifact" "$folder" || fail "run this again to retry"
    found="$(sha256sum <"$file" | cut -d ' ' -f 1)"
    [ "$found" = "$sum" ] ||
        fail "$artifact has the SHA-256 $found, not $sum: it is not used." \
            "Remove it from Maven's local repository and run this again"
    chmod 644 "$file"
    mv "$file" "$JARS/"
}

# fetch_jar ARTIFACT SHA256: the jar in .jars, by Maven unless it is there; two at once take turns.
fetch_jar() {
    has_jar "$@" && return
    mkdir -p "$JARS"
    (
        if command -v flock >/dev/null; then flock 9; fi
        if has_jar "$@"; then exit; fi
        # Whatever becomes of this run, nothing unchecked stays. A trap sees no local variables; this is a subshell.
        DOWNLOAD="$(mktemp --directory "$JARS/download.XXXXXX")"
        trap 'rm -rf "$DOWNLOAD"' EXIT
        download_jar "$@" "$DOWNLOAD"
    ) 9>"$ROOT/.venv.lock"
}
