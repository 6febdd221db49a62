# The image of a node (`hpwsn serve`) and of an admin node (`hpwsn admin`). From the root of the checkout:
#   docker build --file scripts/deploy/docker/node.Dockerfile --tag hpwsn-node .

FROM debian:13-slim AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
        gcc libc6-dev libldap-dev libsasl2-dev python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/hpwsn
# The dependencies come first: they stay in the build's cache while only our own code changes.
COPY scripts/locks /src/scripts/locks
RUN /opt/hpwsn/bin/pip install --no-cache-dir --require-hashes --requirement /src/scripts/locks/build.txt \
    && /opt/hpwsn/bin/pip install --no-cache-dir --require-hashes --no-build-isolation \
        --requirement /src/scripts/locks/node.txt
COPY . /src
RUN /opt/hpwsn/bin/pip install --no-cache-dir --no-deps --no-build-isolation /src/client /src \
    && /opt/hpwsn/bin/pip uninstall --yes setuptools pip

FROM debian:13-slim
LABEL org.opencontainers.image.title="HPwsn node" \
    org.opencontainers.image.description="A WS-Notification broker" \
    org.opencontainers.image.licenses="Apache-2.0"
# The user's number is fixed: the files in a volume belong to it across builds of the image.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates libldap2 libsasl2-2 python3 \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 8080 hpwsn \
    && useradd --uid 8080 --gid 8080 --home-dir /var/lib/hpwsn --shell /usr/sbin/nologin hpwsn \
    && install --directory --owner hpwsn --group hpwsn --mode 750 /var/lib/hpwsn
COPY --from=build /opt/hpwsn /opt/hpwsn
COPY scripts/deploy/docker/health-check /usr/local/bin/health-check
ENV PATH=/opt/hpwsn/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
# Every address, since a container's own loopback is reached by nobody else. What is published decides who reaches it.
ENV HPWSN_SERVER_HOST=0.0.0.0 HPWSN_DATA_DIR=/var/lib/hpwsn
ENV HPWSN_ADMIN_HOST=0.0.0.0 HPWSN_ADMIN_DIR=/var/lib/hpwsn
USER 8080:8080
WORKDIR /var/lib/hpwsn
VOLUME /var/lib/hpwsn
EXPOSE 8080
# SIGTERM drains for up to server.drain_timeout, 10 s.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["health-check", "8080"]
CMD ["hpwsn", "serve"]
