"""Random branches and loops with one dependent instruction a block: the simulator finds no wait state missing."""

from __future__ import annotations

import functools
import itertools
import random

import numpy as np
import pytest

from warpwave.backends.amd import sim
from warpwave.backends.amd.arch import TARGETS
from warpwave.backends.amd.sim.tests._asm import Kernel
from warpwave.backends.amd.sim.tests.test_spacing_rules import (
    AS_A,
    DEFINE,
    M4,
    M8,
    OVERLAP_4,
    READ,
    S8,
    S16,
    SAME_4,
    STORE,
    WRITE,
)
from warpwave.backends.amd.spacing import spaced

INSTRUCTIONS = (
    *((M4,), (M8,), (S8,), (S16,), (SAME_4,), (OVERLAP_4,), (AS_A,), (READ,), (WRITE,), (STORE,)),
    *(("v_mov_b32_e32 v44, 0",), ("v_mov_b32_e32 v40, 1.0",), ("v_div_fmas_f32 v30, v2, v3, v4",)),
    *(("v_cmp_eq_u32_e32 vcc, v2, v3",), ("v_cndmask_b32_e32 v30, v2, v3, vcc",)),
    *(("v_readlane_b32 s20, v60, 3",), ("v_readlane_b32 s21, v3, s20",), ("v_readlane_b32 s7, v62, 3",)),
    ("v_mov_b32_dpp v30, v8 row_shr:1 row_mask:0xf bank_mask:0xf",),
    ("global_load_dword v30, v61, s[6:7]", "s_waitcnt vmcnt(0)"),
    ("global_store_dwordx4 v61, v[8:11], s[6:7]",),
)
HEAD = ["s_load_dwordx2 s[6:7], s[0:1], 0x0", "v_mov_b32_e32 v61, 0", "s_waitcnt lgkmcnt(0)", *DEFINE]
HEAD += ["v_mov_b32_e32 v62, s7", "s_nop 15"]
TAIL = ["s_waitcnt vmcnt(0) lgkmcnt(0)", "s_nop 15", "s_nop 15"]


class Program:
    """Instructions with labels; a branch asks for a bit of s40, a loop counts down its own register."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.labels = (f".L{n}" for n in itertools.count())
        self.body = self.statements(0)

    def statements(self, depth: int) -> list[str]:
        kinds = [self.block, self.block, self.branch, self.branch, self.loop]
        chosen = [self.random.choice(kinds if depth < 3 else kinds[:2]) for _ in range(self.random.randint(1, 4))]
        return [line for make in chosen for line in make(depth + 1)]

    def block(self, _: int) -> list[str]:
        fill = ["s_add_u32 s36, s36, 1"] * self.random.choice([0, 0, 0, 1, 2, 5])
        return [f"{next(self.labels)}:", *fill, *self.random.choice(INSTRUCTIONS)]

    def branch(self, depth: int) -> list[str]:
        other, end = next(self.labels), next(self.labels)
        alternative = self.statements(depth) if self.random.random() < 0.5 else []
        head = [f"s_bitcmp1_b32 s40, {self.random.randrange(4)}", f"s_cbranch_scc0 {other}"]
        return [*head, *self.statements(depth), f"s_branch {end}", f"{other}:", *alternative, f"{end}:"]

    def loop(self, depth: int) -> list[str]:
        start, counter = next(self.labels), f"s{50 + depth}"
        test = [f"s_sub_u32 {counter}, {counter}, 1", f"s_cmp_lg_u32 {counter}, 0", f"s_cbranch_scc1 {start}"]
        return [f"s_mov_b32 {counter}, 2", f"{start}:", *self.statements(depth), *test]


def missing(program, way, target, finish):
    """Whether the simulator misses a wait state on one of the ways."""
    body = [*HEAD, f"s_mov_b32 s40, {way}", *program.body, *TAIL]
    loaded = sim.load(finish(Kernel(body, target, agprs=32, lds=512).text()), target=target)
    memory = np.zeros(256, np.uint32)
    try:
        loaded.launch("k", grid=(1, 1, 1), block=(64, 1, 1), args=[memory], relax={"global_race"})
    except sim.SimError as error:
        if error.kind != "hazards":
            raise
        return True
    return False


def attempt(seeds):
    """Programs that miss a wait state as they are; none does when they are spaced."""
    found = 0
    for seed, target in itertools.product(seeds, TARGETS.values()):
        program = Program(seed)
        ways = range(0, 16, 5)
        finish = functools.partial(spaced, target=target)
        assert not any(missing(program, way, target.name, finish) for way in ways), seed
        found += any(missing(program, way, target.name, str) for way in ways)
    return found


def test_random_ways():
    assert attempt(range(12)) > 6


@pytest.mark.sweep
def test_many_random_ways():
    assert attempt(range(12, 2000)) > 1000
