"""Which function lowers each op that needs no vendor's instruction."""

from __future__ import annotations

from collections.abc import Callable

from warpwave.tiles.ir import Op
from warpwave.tiles.simt import control, elementwise, memory, printing, reduce, shared
from warpwave.tiles.simt.assign import TIED
from warpwave.tiles.simt.context import Lowering

COMMON: dict[str, Callable[[Lowering, Op], None]] = {
    **dict.fromkeys(TIED - {"distribute", "cumsum"}, elementwise.lower_elementwise),
    **dict.fromkeys(("reduce_max", "reduce_min", "reduce_sum", "reduce_prod"), reduce.lower_reduce),
    "cumsum": reduce.lower_cumsum,
    "constant": elementwise.lower_constant,
    "iota": elementwise.lower_iota,
    "broadcast": elementwise.lower_broadcast,
    "expand_dims": elementwise.lower_expand_dims,
    "squeeze": elementwise.lower_squeeze,
    "transpose": elementwise.lower_transpose,
    "slice": elementwise.lower_slice,
    "concat": elementwise.lower_concat,
    "deinterleave": elementwise.lower_deinterleave,
    "interleave": elementwise.lower_interleave,
    "distribute": elementwise.lower_distribute,
    "random_bits": elementwise.lower_random_bits,
    "dim": memory.lower_dim,
    "load": memory.lower_load,
    "store": memory.lower_store,
    "atomic_add": memory.lower_atomic_add,
    "copy": shared.lower_copy,
    "shared_alloc": shared.lower_shared_alloc,
    "shared_read": shared.lower_shared_read,
    "shared_write": shared.lower_shared_write,
    "for": control.lower_for,
    "if": control.lower_if,
    "while": control.lower_while,
    "barrier": control.lower_barrier,
    "check": control.lower_check,
    "print": printing.lower_print,
}
