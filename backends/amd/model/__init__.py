"""Modelled time on AMD chips: of a compute unit (`timing`), and of a grid with its caches by XCD (`grid`).

Nothing here is a measurement. `docs/timing.md` and `docs/grid_model.md` state the rules and the errors.
"""
