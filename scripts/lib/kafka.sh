# Apache Kafka and Spark's package for it: sourced after environment.sh, then call `kafka_jars`.
#
# Maven resolves two small poms in scripts/lib/kafka, and the jars go to .jars/kafka of the checkout: `server` is a
# class path for Kafka, `spark` has the jars that Spark is given. jars.sha256 pins each jar, and a second run needs
# neither Maven nor a network.

source "$ROOT/scripts/lib/maven.sh"

KAFKA_JARS="$JARS/kafka"
KAFKA_POMS="$ROOT/scripts/lib/kafka"
MAVEN_COPY_ALL="org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"

# are_kafka_jars FOLDER: whether it has exactly the jars of the list.
are_kafka_jars() {
    [ -d "$1" ] &&
        [ "$(cd "$1" && printf '%s\n' */*.jar | LC_ALL=C sort)" = \
            "$(cut -c 67- "$KAFKA_POMS/jars.sha256" | LC_ALL=C sort)" ] &&
        (cd "$1" && sha256sum --check --status "$KAFKA_POMS/jars.sha256")
}

has_kafka_jars() { are_kafka_jars "$KAFKA_JARS"; }

# want_kafka: says that Maven is wanted, unless the jars are there.
want_kafka() { has_kafka_jars || want_maven; }

# maven_copy_all POM FOLDER: all jars of a pom. The locale is for paths with letters that the C locale does not have.
maven_copy_all() {
    LC_ALL=C.UTF-8 mvn --batch-mode --no-transfer-progress --file "$1" "$MAVEN_COPY_ALL" -DincludeScope=runtime \
        "-DoutputDirectory=$2" </dev/null
}

download_kafka_jars() {
    local part
    for part in server spark; do
        step "fetching the jars of scripts/lib/kafka/$part.xml with Maven (once)" \
            maven_copy_all "$KAFKA_POMS/$part.xml" "$1/$part" || fail "run this again to retry"
    done
    are_kafka_jars "$1" ||
        fail "Maven brought other jars than scripts/lib/kafka/jars.sha256 lists: they are not used." \
            "Remove those of Kafka and Spark from Maven's local repository and run this again"
    chmod 755 "$1"
    rm -rf "$KAFKA_JARS"
    mv "$1" "$KAFKA_JARS"
}

# kafka_jars: the jars in .jars/kafka, by Maven unless they are there; two at once take turns.
kafka_jars() {
    if has_kafka_jars; then return; fi
    mkdir -p "$JARS"
    (
        if command -v flock >/dev/null; then flock 9; fi
        if has_kafka_jars; then exit; fi
        # Whatever becomes of this run, nothing unchecked stays. A trap sees no local variables; this is a subshell.
        DOWNLOAD="$(mktemp --directory "$JARS/download.XXXXXX")"
        trap 'rm -rf "$DOWNLOAD"' EXIT
        download_kafka_jars "$DOWNLOAD"
    ) 9>"$ROOT/.venv.lock"
}

# spark_kafka_jars: what Spark's option --jars takes.
spark_kafka_jars() { printf '%s\n' "$KAFKA_JARS"/spark/*.jar | paste --serial --delimiters ,; }
