# The image of ActiveMQ as the backbone, from Debian's packages. From the root of the checkout:
#   docker build --file scripts/deploy/docker/activemq.Dockerfile --tag hpwsn-activemq .
# The passwords are not in it: /etc/hpwsn/activemq/credentials.properties is mounted (see servers.yaml).

# The jars of the MQTT and AMQP connectors that Debian's ActiveMQ leaves out; Maven gets some of them, by checksum.
FROM debian:13-slim AS jars
RUN mkdir --parents /usr/share/man/man1 \
    && apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
        activemq libmqtt-client-java maven \
    && rm -rf /var/lib/apt/lists/*
COPY scripts/activemq /src/scripts/activemq
COPY scripts/lib /src/scripts/lib
RUN /src/scripts/activemq --jars /jars

FROM debian:13-slim
LABEL org.opencontainers.image.title="ActiveMQ for HPwsn" \
    org.opencontainers.image.description="ActiveMQ with STOMP, MQTT and AMQP 1.0, configured as the backbone of HPwsn" \
    org.opencontainers.image.licenses="Apache-2.0"
# The user's number is fixed: the files in a volume belong to it across builds of the image. Java's package links its
# manual into a folder that the slim image lacks.
RUN mkdir --parents /usr/share/man/man1 \
    && groupadd --gid 8161 activemq \
    && useradd --uid 8161 --gid 8161 --home-dir /var/lib/hpwsn-activemq --shell /usr/sbin/nologin activemq \
    && apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends activemq libmqtt-client-java \
    && rm -rf /var/lib/apt/lists/* \
    && install --directory --owner activemq --group activemq --mode 750 \
        /var/lib/hpwsn-activemq /var/lib/hpwsn-activemq/data
COPY --from=jars /jars /var/lib/hpwsn-activemq/lib
COPY scripts/deploy/activemq.xml scripts/deploy/log4j.properties /etc/hpwsn/activemq/
USER 8161:8161
WORKDIR /var/lib/hpwsn-activemq
VOLUME /var/lib/hpwsn-activemq/data
EXPOSE 61613 1883 5672
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/61613"]
CMD ["java", "-Xms256m", "-Xmx1g", \
    "-Dlog4j.configuration=file:/etc/hpwsn/activemq/log4j.properties", \
    "-Dactivemq.home=/usr/share/activemq", "-Dactivemq.base=/var/lib/hpwsn-activemq", \
    "-Dactivemq.conf=/etc/hpwsn/activemq", "-Dactivemq.data=/var/lib/hpwsn-activemq/data", \
    "-jar", "/usr/share/activemq/bin/activemq.jar", "start", "xbean:file:/etc/hpwsn/activemq/activemq.xml"]
