"""python -m invar.bench."""

import sys

from invar.bench import main

sys.exit(main())
