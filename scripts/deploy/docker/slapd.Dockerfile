# The image of OpenLDAP with the schema for topics, from Debian's packages. From the root of the checkout:
#   docker build --file scripts/deploy/docker/slapd.Dockerfile --tag hpwsn-slapd .
# The passwords are not in it: slapd-start takes them from /run/secrets.

FROM debian:13-slim
LABEL org.opencontainers.image.title="OpenLDAP for HPwsn" \
    org.opencontainers.image.description="OpenLDAP with the schema for topics of HPwsn" \
    org.opencontainers.image.licenses="OLDAP-2.8"
# The user's number is fixed: the files in a volume belong to it across builds of the image.
RUN groupadd --gid 8389 openldap \
    && useradd --uid 8389 --gid 8389 --home-dir /var/lib/hpwsn-slapd --shell /usr/sbin/nologin openldap \
    && apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends ldap-utils slapd \
    && rm -rf /var/lib/apt/lists/* /etc/ldap/slapd.d /var/lib/ldap \
    && install --directory --owner openldap --group openldap --mode 750 /var/lib/hpwsn-slapd
COPY ldap_schema/hpwsn.schema ldap_schema/hpwsn-visibility.schema ldap_schema/hpwsn-sensors.schema ldap_schema/base.ldif scripts/deploy/docker/slapd.conf /etc/hpwsn/slapd/
COPY scripts/deploy/docker/slapd-start /usr/local/bin/slapd-start
USER 8389:8389
WORKDIR /var/lib/hpwsn-slapd
VOLUME /var/lib/hpwsn-slapd
EXPOSE 1389
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["ldapsearch", "-x", "-LLL", "-o", "nettimeout=4", "-H", "ldap://127.0.0.1:1389", "-s", "base", "-b", "", "1.1"]
CMD ["slapd-start"]
