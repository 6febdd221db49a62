"""Makes Spyne 2.14 importable on every supported Python.

Spyne 2.14, its newest release, depends on two things that newer Pythons do not have:

- It carries a copy of six 1.14, whose importer for `spyne.util.six.moves` has `find_module` but no
  `find_spec`. Python 3.11 warns about such an importer, Python 3.12 ignores it. `SixFinder` replaces
  `spyne.util.six` by the installed six, unless the copy in Spyne has a `find_spec`.
- It imports `cgi`, for one function. Python 3.11 and 3.12 warn that `cgi` is deprecated; Python 3.13 does not
  have it, and there the distribution legacy-cgi provides it.

The package `hpwsn.door` calls `prepare` before any of its modules is imported. A program that imports Spyne
itself must import `hpwsn.door` first.
"""

import importlib
import operator
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import InspectLoader, Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

BUNDLED_SIX = "spyne.util.six"


class SixFinder(MetaPathFinder, Loader):
    """Finds `spyne.util.six`, and the modules below it, in the installed six."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return None for any other module, and if Spyne's own copy of six works."""
        if fullname == BUNDLED_SIX:
            return ModuleSpec(fullname, self, is_package=True) if _is_outdated(path) else None
        if fullname.startswith(BUNDLED_SIX + ".") and sys.modules[BUNDLED_SIX].__loader__ is self:
            return ModuleSpec(fullname, self, is_package=True)
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Fill `spyne.util.six`, or replace a module below it by that of six; six itself is not changed."""
        name = module.__name__
        installed = importlib.import_module(name.removeprefix("spyne.util."))
        if name == BUNDLED_SIX:
            public = {key: value for key, value in vars(installed).items() if not key.startswith("_")}
            # Spyne added this to its copy.
            vars(module).update(public, get_function_name=operator.attrgetter("__name__"))
        else:
            sys.modules[name] = installed


def _is_outdated(path: Sequence[str] | None) -> bool:
    """Whether the copy of six in Spyne, found on `path`, has an importer that Python 3.12 ignores."""
    spec = PathFinder.find_spec(BUNDLED_SIX, path)
    if spec is None or not isinstance(spec.loader, InspectLoader):
        return False
    source = spec.loader.get_source(BUNDLED_SIX) or ""
    return "_SixMetaPathImporter" in source and "def find_spec" not in source


_finder = SixFinder()


def prepare() -> None:
    """Make `import spyne` work; calling it again changes nothing."""
    if _finder in sys.meta_path:
        return
    sys.meta_path.insert(0, _finder)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "'cgi' is deprecated", DeprecationWarning)
        importlib.import_module("cgi")
