# The jars of ActiveMQ's AMQP 1.0 connector: sourced after environment.sh, then call `amqp_jars FOLDER`, or
# `fetch_amqp_jars` to have them for later.
#
# Debian's activemq leaves the connector out, and Debian 12 has no proton-j, on which it builds. The connector of 5.17.6
# fits ActiveMQ 5.17.2 (Debian 12) and 5.17.6 (Debian 13).

source "$ROOT/scripts/lib/maven.sh"

AMQP_CONNECTOR=(org.apache.activemq:activemq-amqp:5.17.6
    de30cbd919b00ce627d10b93ec62fbd49b2bdbeb75fcdc1f01c38202dbb88961)
AMQP_CODEC=(org.apache.qpid:proton-j:0.34.1 e1b53dc9a1e54b23aff6ece693bbf3b2ab25004542031ec49018329b038888ea)

has_amqp_jars() { has_jar "${AMQP_CONNECTOR[@]}" && has_jar "${AMQP_CODEC[@]}"; }

# want_amqp: says that Maven is wanted, unless the jars are there.
want_amqp() { has_amqp_jars || want_maven; }

fetch_amqp_jars() {
    fetch_jar "${AMQP_CONNECTOR[@]}"
    fetch_jar "${AMQP_CODEC[@]}"
}

# amqp_jars FOLDER: copies the jars into a folder.
amqp_jars() {
    fetch_amqp_jars
    cp "$(jar_file "${AMQP_CONNECTOR[0]}")" "$(jar_file "${AMQP_CODEC[0]}")" "$1/"
}
