"""The pytest plugin: `--conform-targets` and `--conform-seed` for tests made with `conforms`."""

from __future__ import annotations

import pytest

from warpwave.conformance.testing import TARGET


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("warpwave conformance")
    group.addoption("--conform-targets", help="comma-separated targets; by default all that can run here")
    group.addoption("--conform-seed", type=int, default=0, help="of the inputs that are only described")


@pytest.fixture
def conform_seed(request: pytest.FixtureRequest) -> int:
    """What `--conform-seed` says."""
    return int(request.config.getoption("--conform-seed"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each target."""
    if TARGET not in metafunc.fixturenames:
        return
    from warpwave.conformance.session import runnable_targets
    from warpwave.tiles.errors import TileError

    try:
        targets = runnable_targets(metafunc.config.getoption("--conform-targets"))
    except TileError as error:
        raise pytest.UsageError(f"--conform-targets: {error}") from error
    metafunc.parametrize(TARGET, targets)
