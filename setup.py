"""The version, the packages and the required client of hpwsn; all else is in setup.cfg.

The version is written once, in the client, which both distributions share. An sdist holds that one file of
the client, so that it builds without the checkout.
"""

import ast
from pathlib import Path

from setuptools import Distribution, find_packages, setup
from setuptools.command.build_py import build_py

FOUND_BY_SPARK = {"pyspark_hpwsn": "hpwsn/streams/spark/lookup/pyspark_hpwsn"}
"""The top-level package by which PySpark finds the data source, and its folder."""
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


class Packages(build_py):
    """Copies the package for PySpark in an editable install too.

    PySpark lists the folders of the path, and does not see packages that an import hook finds.
    """

    def run(self) -> None:
        """Build; an editable install takes what is in the folder of the `install` command."""
        super().run()
        if self.editable_mode:
            target = Path(self.get_finalized_command("install").install_lib)
            for package, folder in FOUND_BY_SPARK.items():
                self.copy_tree(folder, str(target / package))


setup(
    version=VERSION,
    distclass=Node,
    cmdclass={"build_py": Packages},
    packages=[
        *find_packages(".", include=["hpwsn", "hpwsn.*"]),
        *find_packages("admin", include=["hpwsn_admin", "hpwsn_admin.*"]),
        *FOUND_BY_SPARK,
    ],
    package_dir={"hpwsn_admin": "admin/hpwsn_admin", **FOUND_BY_SPARK},
)
