"""`python -m hpwsn` is the `hpwsn` command."""

import sys

from hpwsn.commands.main import main

if __name__ == "__main__":
    sys.exit(main())
