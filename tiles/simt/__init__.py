"""Lowering of tiles to C++ for machines of lanes and waves: all that does not depend on whose machine it is.

A backend adds its tables, the layouts of its matrix products, its pipelines, and a device prelude with the
functions that the text calls.
"""
