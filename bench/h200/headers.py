"""The library's kernels with upstream ThunderKittens' headers in place of ours: is the machine code the same?

    python -m warpwave.bench.h200.headers CHECKOUT     # needs nvcc and nvdisasm, no GPU

The generated source is compiled unchanged, once with our kittens.cuh and once with that of the checkout. Equal
machine code computes equal results.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import warpwave as ww
from warpwave.backends.nvidia import nvcc, sass
from warpwave.backends.nvidia.build import INCLUDE
from warpwave.kernels.attention import attention
from warpwave.kernels.gemm import gemm
from warpwave.kernels.layernorm import layernorm
from warpwave.kernels.rotary import rotary

FLAGS = ("-std=c++20", "-fmad=false", "-w", "-gencode", "arch=compute_90a,code=sm_90a")
UPSTREAM_FLAGS = ("--expt-relaxed-constexpr", "--expt-extended-lambda", "-DKITTENS_HOPPER")


@dataclass(frozen=True)
class Comparison:
    """A kernel's code with both headers."""

    kernel: str
    ours: tuple[str, ...]
    upstream: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether all instructions are equal, in order."""
        return self.ours == self.upstream

    def __str__(self) -> str:
        matrix = sum("GMMA" in text for text in self.ours)
        verdict = "the same" if self.same else f"differs: {len(self.upstream)} instructions"
        return f"| {self.kernel} | {len(self.ours)} | {matrix} | {verdict} |"


def sources() -> Iterator[tuple[str, str]]:
    """Names and generated sources, with the constants that calls of usual sizes get."""

    def arrays(*shape: int, count: int) -> list[ww.ArraySpec]:
        return [ww.ArraySpec(ww.bf16, shape)] * count

    square, heads = arrays(4096, 4096, count=3), arrays(4, 16, 4096, 128, count=4)
    rows, weight = arrays(32768, 4096, count=1), arrays(4096, count=2)
    angles = arrays(4096, 64, count=2)
    yield "gemm", gemm.compile(*square, transpose_b=True, target="nvidia:sm90a").source
    yield "attention", attention.compile(*heads, target="nvidia:sm90a").source
    yield "attention, causal", attention.compile(*heads, causal=True, target="nvidia:sm90a").source
    yield "layernorm", layernorm.compile(*rows, *rows, *weight, target="nvidia:sm90a").source
    yield "rotary", rotary.compile(*heads[:2], *angles, target="nvidia:sm90a").source


def code(source: str, *options: str) -> tuple[str, ...]:
    """The instructions that nvcc makes of a source."""
    cubin = nvcc.compile_source(nvcc.find(), source, "kernel.cu", (*FLAGS, *options))[0]
    return tuple(i.text for i in sass.parse(sass.disassemble(cubin))[0])


def compare(checkout: Path) -> Iterator[Comparison]:
    """All kernels, one after another."""
    for name, source in sources():
        ours = code(source, f"-I{INCLUDE}")
        upstream = code(source, *UPSTREAM_FLAGS, f"-I{checkout / 'include'}", f"-I{INCLUDE}")
        yield Comparison(name, ours, upstream)


def main() -> int:
    """Print a table; 1 if a kernel's code differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, help="a checkout of ThunderKittens 2.0")
    checkout = parser.parse_args().checkout
    print("| kernel | instructions | of them wgmma | with upstream's kittens.cuh |\n|---|---|---|---|")
    different = 0
    for comparison in compare(checkout):
        print(comparison, flush=True)
        different += not comparison.same
    return int(different > 0)


if __name__ == "__main__":
    raise SystemExit(main())
