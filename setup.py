"""The version, the packages and the required client of hpwsn; all else is in setup.cfg.

The version is written once, in the client, which both distributions share. An sdist holds that one file of
the client, so that it builds without the checkout.
"""

import ast
from pathlib import Path

from setuptools import Distribution, find_packages, setup

CLIENT = Path(__file__).parent / "client" / "hpwsn_client" / "__init__.py"


def read_version(module: Path) -> str:
    """The value of `__version__`, read without importing the module."""
    for statement in ast.parse(module.read_text("utf-8")).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__version__":
            return str(ast.literal_eval(statement.value))
    raise SystemExit(f"{module} has no line `__version__ = …`; write one")


VERSION = read_version(CLIENT)


class Node(Distribution):
    """Requires, beside the list in setup.cfg, the client of exactly this version."""

    def parse_config_files(self, *args: object, **options: object) -> None:
        """Add the client once setup.cfg is read: its list replaces one that is given to `setup`."""
        super().parse_config_files(*args, **options)
        self.install_requires = [f"hpwsn-client=={VERSION}", *self.install_requires]
        self.metadata.install_requires = self.install_requires


setup(
    version=VERSION,
    distclass=Node,
    packages=[
        *find_packages(".", include=["hpwsn", "hpwsn.*"]),
        *find_packages("admin", include=["hpwsn_admin", "hpwsn_admin.*"]),
    ],
    package_dir={"hpwsn_admin": "admin/hpwsn_admin"},
)
