# The jars of ActiveMQ's AMQP 1.0 connector: sourced after environment.sh, then call `amqp_jars FOLDER`, or
# `fetch_amqp_jars` to have them for later.
#
# Debian's activemq leaves the connector out, and Debian 12 has no proton-j, on which it builds. Maven gets both, once,
# into .jars of the checkout, each with the SHA-256 that is pinned here; a second run needs neither Maven nor a network.
# The connector of 5.17.6 fits ActiveMQ 5.17.2 (Debian 12) and 5.17.6 (Debian 13).

AMQP_JARS="$ROOT/.jars"
AMQP_PINS="
org.apache.activemq:activemq-amqp:5.17.6 de30cbd919b00ce627d10b93ec62fbd49b2bdbeb75fcdc1f01c38202dbb88961
org.apache.qpid:proton-j:0.34.1 e1b53dc9a1e54b23aff6ece693bbf3b2ab25004542031ec49018329b038888ea
"
AMQP_PLUGIN="org.apache.maven.plugins:maven-dependency-plugin:3.8.1"

# each_amqp_jar COMMAND: COMMAND ARTIFACT SHA256 FILE for each jar, as long as the command succeeds.
each_amqp_jar() {
    local artifact sum file
    while read -r artifact sum; do
        [ -n "$artifact" ] || continue
        file="${artifact#*:}"
        "$1" "$artifact" "$sum" "${file/:/-}.jar" || return
    done <<<"$AMQP_PINS"
}

is_amqp_jar() { [ -f "$AMQP_JARS/$3" ] && sha256sum --check --status <<<"$2  $AMQP_JARS/$3"; }

get_amqp_jar() {
    local download found
    is_amqp_jar "$@" && return
    download="$(mktemp --directory "$AMQP_JARS/download.XXXXXX")"
    if ! mvn --batch-mode --quiet "$AMQP_PLUGIN:copy" "-Dartifact=$1" "-DoutputDirectory=$download" </dev/null >&2; then
        rm -rf "$download"
        fail "Maven could not get $1; the lines above say why. Run this again to retry"
    fi
    found="$(sha256sum <"$download/$3" | cut -d ' ' -f 1)"
    if [ "$found" != "$2" ]; then
        rm -rf "$download"
        fail "$1 has the SHA-256 $found, not $2: it is not used." \
            "Remove it from Maven's local repository and run this again"
    fi
    chmod 644 "$download/$3"
    mv "$download/$3" "$AMQP_JARS/"
    rmdir "$download"
}

# fetch_amqp_jars: the jars in .jars, by Maven unless they are there; two at once take turns.
fetch_amqp_jars() {
    each_amqp_jar is_amqp_jar && return
    command -v mvn >/dev/null || need_apt maven
    say "fetching the jars for AMQP into .jars with Maven (once)"
    mkdir -p "$AMQP_JARS"
    (if command -v flock >/dev/null; then flock 9; fi; each_amqp_jar get_amqp_jar) 9>"$ROOT/.venv.lock"
}

copy_amqp_jar() { cp "$AMQP_JARS/$3" "$amqp_target/"; }

# amqp_jars FOLDER: copies the jars into a folder.
amqp_jars() {
    local amqp_target="$1"
    fetch_amqp_jars
    each_amqp_jar copy_amqp_jar
}
