"""The C++ core (bind.cpp). The Python modules beside it are its typed interface, so here all is Any."""

from typing import Any

def __getattr__(name: str) -> Any: ...
