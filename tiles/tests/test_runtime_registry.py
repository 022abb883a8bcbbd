from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import EntryPoint

import pytest

from warpwave.tiles.errors import TileTypeError, TileValueError, UnsupportedError
from warpwave.tiles.runtime import registry
from warpwave.tiles.runtime.backend import Target


@dataclass
class Distribution:
    name: str


@dataclass
class Toy:
    name: str
    names: tuple[str, ...] = ()
    device: str = ""

    def targets(self):
        return [Target(n, "a toy", "toy") for n in self.names or (self.name,)]

    def target_for(self, device):
        return self.targets()[0].name if device == self.device else None

    def diagnose(self):
        return []

    def compile(self, kernel, target, options):
        raise NotImplementedError


def point(name, loaded, owner="tests", value=""):
    class Point(EntryPoint):
        dist = Distribution(owner)

        def load(self):
            if isinstance(loaded, Exception):
                raise loaded
            return loaded

    return Point(name, value or f"{owner}:{name}", registry.GROUP)


@pytest.fixture
def install(monkeypatch):
    def set_points(*points):
        monkeypatch.setattr(registry, "_entry_points", lambda: points)
        registry._load.cache_clear()

    yield set_points
    registry._load.cache_clear()


def test_targets_are_found_by_name(install):
    one, two = Toy("one", ("one:a", "one:b")), Toy("two")
    install(point("one", one), point("two", two))
    assert registry.resolve("one:b") is one
    assert registry.resolve("two") is two
    assert registry.resolve("one:a:sim") is one
    assert [t.name for t in registry.targets()] == ["one:a", "one:b", "two"]


def test_an_unknown_target_offers_the_nearest_and_lists_all(install):
    install(point("one", Toy("one", ("one:fast", "one:slow"))))
    for wrong in ("one:fsat", "one", "oen:fast"):
        with pytest.raises(UnsupportedError, match=f"there is no target {wrong!r}") as info:
            registry.resolve(wrong)
        assert "did you mean 'one:" in info.value.hint
        assert "installed: one:fast, one:slow" in info.value.hint
    with pytest.raises(TileTypeError, match="a target is a name"):
        registry.resolve(3)


def test_no_backend_at_all_says_how_to_install(install):
    install()
    with pytest.raises(UnsupportedError, match="no backend is installed") as info:
        registry.resolve("reference")
    assert "pip install" in info.value.hint


def test_two_owners_of_one_name_are_both_named(install):
    install(point("one", Toy("one"), "first-package"), point("one", Toy("one"), "second-package"))
    with pytest.raises(TileValueError, match=r"'one': first-package \(first-package:one\) and second-package") as info:
        registry.plugins()
    assert "pip uninstall second-package" in info.value.hint


def test_the_same_entry_seen_twice_is_no_conflict(install):
    install(point("one", Toy("one")), point("one", Toy("one")))
    assert list(registry.plugins()) == ["one"]


@pytest.mark.parametrize(
    ("loaded", "problem"),
    [
        (ImportError("no module named gpu"), "ImportError: no module named gpu"),
        (object(), "is no backend: it lacks name, targets, target_for, diagnose, compile"),
        (Toy("other"), "calls itself 'other', not 'bad'"),
    ],
)
def test_a_broken_plugin_is_reported_and_the_others_work(install, loaded, problem):
    install(point("bad", loaded, "bad-package"), point("good", Toy("good")))
    assert problem in registry.plugins()["bad"].problem
    assert registry.resolve("good").name == "good"
    with pytest.raises(UnsupportedError, match="the backend 'bad' of bad-package could not be loaded"):
        registry.resolve("bad:x")


def test_the_target_of_a_device(install):
    install(point("one", Toy("one", ("one:x",), "dlpack5:0")), point("two", Toy("two", (), "cpu:0")))
    assert registry.target_for("dlpack5:0") == "one:x"
    assert registry.target_for("cpu:0") == "two"
    with pytest.raises(UnsupportedError, match="no installed backend takes arrays on dlpack6:0"):
        registry.target_for("dlpack6:0")
