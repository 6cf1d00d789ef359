"""invar.ops under the name that torch has for such functions: from invar.nn import functional as
F."""

from invar.ops import *  # noqa: F403
from invar.ops import __all__  # noqa: F401
