"""The packages of the distribution; all else is in setup.cfg, which can name only one root of the three."""

from setuptools import find_packages, setup

setup(
    packages=[
        *find_packages(".", include=["hpwsn", "hpwsn.*"]),
        *find_packages("client", include=["hpwsn_client", "hpwsn_client.*"]),
        *find_packages("admin", include=["hpwsn_admin", "hpwsn_admin.*"]),
    ],
    package_dir={"hpwsn_client": "client/hpwsn_client", "hpwsn_admin": "admin/hpwsn_admin"},
)
