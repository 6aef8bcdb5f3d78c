"""`python -m qgate`: the command line."""

import sys

from qgate.cli import main

sys.exit(main())
