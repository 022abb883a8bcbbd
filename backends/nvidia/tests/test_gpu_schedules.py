"""Schedules on a real GPU: the same results whatever the order of blocks, warpgroups and copies. `pytest -m gpu`."""

from __future__ import annotations

import pytest

from warpwave.backends.nvidia.arch import target_of
from warpwave.backends.nvidia.runtime import devices
from warpwave.kernels.attention import attention
from warpwave.kernels.gemm import gemm
from warpwave.tiles.dtypes import bf16
from warpwave.tiles.reference.closed_forms import attention_bound, product_bound

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module", autouse=True)
def hopper():
    if not devices.devices():
        pytest.skip("no NVIDIA GPU here")
    found = target_of(devices.devices()[0].capability)
    if found is None or found.name != "sm90a":
        pytest.skip("no Hopper GPU here")


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


@pytest.mark.parametrize(
    ("tile", "options"),
    [
        ((128, 128), {}),
        ((128, 128), {"turns": True, "stages": 2}),
        ((192, 96), {"turns": True}),
        ((192, 96), {"turns": False}),
        ((128, 64), {"blocks": 2, "overlap": False}),
        ((64, 64), {}),
    ],
    ids=str,
)
@pytest.mark.parametrize(("queries", "keys"), [(1024, 1024), (1000, 1000), (130, 900), (700, 200), (64, 64)])
def test_causal_attention(torch, tile, options, queries, keys):
    """More heads than fit at once, lengths that no tile divides, blocks without whole tiles or without any key."""
    check_causal(torch, tile, options, queries, keys, shift=0)


@pytest.mark.parametrize("tile", [(128, 128), (192, 96)], ids=str)
def test_causal_attention_of_tensors_that_the_copy_engine_does_not_take(torch, tile):
    """Blocks are dealt in the same order where all warps copy."""
    check_causal(torch, tile, {}, 1000, 900, shift=1)


def check_causal(torch, tile, options, queries, keys, shift):
    torch.manual_seed(0)
    batch, heads, groups, width = 5, 8, 2, 64

    def tensor(heads, rows):
        whole = torch.randn(batch, heads, rows, width + 8, device="cuda", dtype=torch.bfloat16)
        return whole[..., shift : shift + width]

    q, k, v = tensor(heads, queries), tensor(groups, keys), tensor(groups, keys)
    out = torch.full((batch, heads, queries, width), float("nan"), device="cuda", dtype=torch.bfloat16)
    constants = {"causal": True, "BQ": tile[0], "BK": tile[1]}
    attention.compile(q, k, v, out, target="nvidia:sm90a", options=options, **constants).run(q, k, v, out)
    many = [x.repeat_interleave(heads // groups, dim=1).double() for x in (k, v)]
    seen = torch.ones(queries, keys, device="cuda", dtype=torch.bool).tril(keys - queries)
    scores = (q.double() @ many[0].mT / width**0.5).masked_fill(~seen, -float("inf"))
    weights = scores.softmax(-1).nan_to_num(0.0)  # a query that sees no key gives 0
    exact, average = weights @ many[1], weights @ many[1].abs()
    largest = (q.double().abs() @ many[0].abs().mT / width**0.5).amax(-1, keepdim=True)
    bound = attention_bound(exact, average, largest, width=width, keys=keys, tile=tile[1], dtype=bf16)
    assert bool(((out.double() - exact).abs() <= bound).all())


@pytest.mark.parametrize(
    "options",
    [{}, {"cluster": 2}, {"cluster": 4}, {"cluster": 4, "stages": 2}, {"lag": 1}, {"lag": 3}, {"stages": 8}],
    ids=str,
)
@pytest.mark.parametrize("tile", [(64, 128), (128, 128), (128, 256)], ids=str)
@pytest.mark.parametrize("shape", [(2048, 1024, 512), (1000, 1032, 264), (64, 128, 64), (5000, 4096, 128)], ids=str)
def test_products(torch, options, tile, shape):
    """Rows of tiles that no cluster divides, loops shorter than the ring or the lag, several blocks for each."""
    torch.manual_seed(0)
    m, n, k = shape
    a, b = (torch.randn(rows, k, device="cuda", dtype=torch.bfloat16) for rows in (m, n))
    c = torch.full((m, n), float("nan"), device="cuda", dtype=torch.bfloat16)
    target = {"target": "nvidia:sm90a", "options": options}
    gemm.compile(a, b, c, transpose_b=True, BM=tile[0], BN=tile[1], BK=64, **target).run(a, b, c)
    exact = a.double() @ b.double().T
    bound = product_bound(exact, a.double().abs() @ b.double().abs().T, k, bf16, bf16)
    assert bool(((c.double() - exact).abs() <= bound).all())
