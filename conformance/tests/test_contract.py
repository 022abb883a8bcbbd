"""The contract's page is fresh, targets are within the general contract, and known figures are within the targets'."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpwave.conformance.contract import TARGETS, numerics_of
from warpwave.conformance.contract_page import page
from warpwave.conformance.figures import FIGURES
from warpwave.tiles.dtypes import BY_NAME
from warpwave.tiles.ir.opdefs import OPS
from warpwave.tiles.reference.accuracy import ACCURACY

ROOT = Path(__file__).parent.parent.parent


def test_the_page_is_fresh():
    command = "python -m warpwave.conformance.contract_page > docs/contract.md"
    assert (ROOT / "docs/contract.md").read_text() == page(), f"run: {command}"


def test_the_page_names_every_op_function_and_target():
    text = page()
    for name in (*OPS, *ACCURACY, *TARGETS):
        assert f"`{name}`" in text


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_is_never_less_accurate_than_the_contract(target):
    for name, allowance in numerics_of(target).functions.items():
        general = ACCURACY[name]
        assert allowance.ulps <= general.ulps
        assert allowance.argument_ulps <= general.argument_ulps
        assert allowance.floor == general.floor
        assert not allowance.flushes or general.flushes


def test_figures_of_what_lowerings_use_are_allowed():
    """And the fast instructions that are not accurate enough are refused."""
    refused = {f.instruction for f in FIGURES if not f.allowed}
    assert refused == {"__expf", "tanh.approx", "lg2.approx"}


def test_models_of_targets_are_of_formats_that_exist():
    for target in TARGETS.values():
        assert set(target.products) <= {*BY_NAME, "tf32"}


@pytest.mark.parametrize("target", ["nvidia:sm89", "nvidia:sm90a"])
def test_fp8_on_tensor_cores_loses_more(target):
    assert numerics_of(target).product_losses["fp8e4m3"] == 2.0**-12
    assert not numerics_of("amd:gfx950").product_losses
    assert numerics_of("reference").addition_roundoffs == 2.0**-26
