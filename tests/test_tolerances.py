"""Results are compared by the contract: no number is written down as a tolerance, but for what is listed here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("tiles", "backends", "kernels", "conformance", "bench", "tests", "docs")
TEXTS = {".md", ".cpp", ".hpp", ".cu", ".cuh", ".hip"}

STATISTICS = "a mean over many elements: it tells rounding to nearest from truncation, or a share from its expectation"
RANGE = "the size of a number, not the distance of two"
INSTRUCTION = "what is said of one instruction of the simulator, tested against exact results"

# Files, how many such places they have, and why: a count that is no longer true fails.
LISTED: dict[str, tuple[int, str]] = {
    "tiles/tests/test_cases.py": (6, f"{STATISTICS}; {RANGE}"),
    "tiles/tests/test_ref_oracle.py": (1, "how little the oracle's own bound may say"),
    "tiles/tests/test_ref_philox.py": (1, STATISTICS),
    "kernels/tests/test_attention.py": (1, STATISTICS),
    "kernels/tests/test_dropout.py": (1, STATISTICS),
    "kernels/tests/test_norms.py": (1, STATISTICS),
    "conformance/tests/test_cases.py": (2, STATISTICS),
    "conformance/tests/test_metamorphic.py": (1, RANGE),
    "conformance/tests/test_programs.py": (1, "neighbours in a distribution of inputs cancel"),
    "conformance/tests/test_verdicts.py": (3, f"a bound as a test's input; {STATISTICS}"),
    "backends/amd/sim/tests/model/lanes.py": (3, RANGE),
    "backends/amd/sim/tests/test_arith_scalars.py": (6, f"{INSTRUCTION}; {RANGE}"),
    "backends/amd/sim/tests/test_model_approx.py": (1, INSTRUCTION),
    "backends/nvidia/tests/test_gpu_autotune.py": (1, "a time, measured twice"),
    "backends/amd/tests/test_fragments.py": (5, "published rates, printed with one decimal"),
}
# Folders whose figures are clocks, rates and hit shares of models and measurements, not results of kernels.
MEASURES = ("backends/amd/model/tests", "bench/tests")


CLOSE = {"allclose", "isclose", "assert_allclose", "assert_almost_equal", "assert_array_almost_equal", "approx"}
CLOSE |= {"assert_array_max_ulp", "assertAlmostEqual"}
OPTIONS = {"atol", "rtol"}
DISTANCE = re.compile(r"abs|fabs|absolute")
ERROR = re.compile(r"(.*_)?(error|errors|err|diff|difference|distance|excess|drift)$")
TOLERANCE = re.compile(r"(.*_)?(bound|slack|tolerance|tol|rounding|epsilon)$", re.IGNORECASE)
WORDS = ("close(", "almost", "Almost", "approx(", "atol", "rtol", "max_ulp")
FRACTION = re.compile(r"\d\.|\de-|\*\* ?-|\b[A-Z][A-Z_\d]+\b")
IN_TEXT = re.compile(r"\ballclose\b|\bisclose\b|\b[ar]tol ?=|f?abs\([^;\n]*\)\s*<=?\s*\d[\d.]*e-\d")


def found_in_python(text: str) -> list[tuple[int, str]]:
    """Line and source of each."""
    if not _worth_parsing(text):
        return []
    tree = ast.parse(text)
    numbers = {n.targets[0].id: n.value for n in tree.body if isinstance(n, ast.Assign) and _is_constant(n)}
    checks = (_is_close, lambda n: _is_distance_below_number(n, numbers), _is_named_tolerance)
    places = {n.lineno for n in ast.walk(tree) if any(check(n) for check in checks)}
    lines = text.splitlines()
    return [(line, lines[line - 1].strip()) for line in sorted(places)]


def _worth_parsing(text: str) -> bool:
    """Parsing all files would take many times as long."""
    if any(word in text for word in WORDS):
        return True
    parts = (line.partition("<" if "<" in line else "=") for line in text.splitlines() if "<" in line or "=" in line)
    return any(
        FRACTION.search(after) and (mark == "<" or TOLERANCE.match(name.split(":")[0].strip()))
        for name, mark, after in parts
    )


def found_in_text(text: str) -> list[tuple[int, str]]:
    """The same for other languages and for code in documents, by pattern."""
    return [(i, line.strip()) for i, line in enumerate(text.splitlines(), 1) if IN_TEXT.search(line)]


def _is_constant(node: ast.Assign) -> bool:
    return len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_close(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and (_name(node.func) in CLOSE or any(k.arg in OPTIONS for k in node.keywords))


def _is_distance_below_number(node: ast.AST, numbers: dict[str, ast.expr]) -> bool:
    """A comparison of a size or an error with an expression that has a fraction in it."""
    if not isinstance(node, ast.Compare) or not all(isinstance(o, ast.Lt | ast.LtE) for o in node.ops):
        return False
    sides = [node.left, *node.comparators]
    return any(_is_distance(x) for x in sides[:-1]) and any(_has_fraction(x, numbers) for x in sides[1:])


def _is_named_tolerance(node: ast.AST) -> bool:
    """A bound or tolerance that is given by a number."""
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
        return False
    names = [_name(t) for t in (node.targets if isinstance(node, ast.Assign) else [node.target])]
    return any(TOLERANCE.match(n) for n in names) and _has_fraction(node.value, {})


def _parts(node: ast.expr) -> Iterator[ast.AST]:
    return ast.walk(node)


def _is_distance(node: ast.expr) -> bool:
    """|a - b|, or what is called an error."""
    for part in _parts(node):
        if isinstance(part, ast.Call) and DISTANCE.fullmatch(_name(part.func)):
            return True
        if isinstance(part, ast.Name | ast.Attribute) and ERROR.match(_name(part)):
            return True
    return False


def _has_fraction(node: ast.expr, numbers: dict[str, ast.expr]) -> bool:
    for part in _parts(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, float) and 0 < part.value < 1:
            return True
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Pow) and isinstance(part.right, ast.UnaryOp):
            return True
        if isinstance(part, ast.Name) and part.id in numbers and _has_fraction(numbers[part.id], {}):
            return True
    return False


def places() -> dict[str, list[tuple[int, str]]]:
    """What is found, by file."""
    found = {}
    for path in [*ROOT.glob("*.md"), *(p for f in FOLDERS for p in (ROOT / f).rglob("*.*"))]:
        name = str(path.relative_to(ROOT))
        if path.suffix in {".py", *TEXTS} and not name.startswith(MEASURES):
            found[name] = (found_in_python if path.suffix == ".py" else found_in_text)(path.read_text())
    return found


def test_no_comparison_has_a_tolerance_of_its_own():
    found = places()
    new = [f"{n}:{i}: {t}" for n, lines in found.items() if len(lines) > LISTED.get(n, (0, ""))[0] for i, t in lines]
    assert not new, "use conformance.contract, reference.running_error or reference.closed_forms, or list the file:"
    stale = [n for n, (count, _) in LISTED.items() if len(found.get(n, [])) < count]
    assert not stale, "these have fewer than their entry says"


@pytest.mark.parametrize(
    "line",
    [
        "np.testing.assert_allclose(a, b)",
        "assert np.allclose(a, b, rtol=1e-5)",
        "assert a == pytest.approx(b)",
        "check(a, b, atol=3)",
        "assert np.abs(a - b).max() < 1e-3",
        "assert (abs(a - b) <= 2.0**-20 * size).all()",
        "assert error.max() < 0.01",
        "bound = 2.0**-8 * abs(exact)",
        "F32_SLACK = 1e-6",
        "LEAST = 1e-6\nassert abs(a - b) < LEAST",
        "assert 0 <= worst_error < 1e-3",
    ],
)
def test_such_a_comparison_would_be_found(line):
    assert found_in_python(line)


@pytest.mark.parametrize(
    "line",
    [
        "assert (abs(a - b) <= bound).all()",
        "assert abs(a - b) <= product_bound(exact, size, 40)",
        "assert seconds < 0.5",
        "assert abs(width - 3) <= 2",
        "bound = gamma(depth, loss) * size",
        "bound = np.where(nan, 0.0, spread)",
        "assert a.sum() == 1.0",
    ],
)
def test_others_are_left_alone(line):
    assert not found_in_python(line)


def test_text_of_other_languages():
    assert found_in_text("x\nif (fabs(a - b) > 0 && fabs(a - b) < 1e-6) return;") == [
        (2, "if (fabs(a - b) > 0 && fabs(a - b) < 1e-6) return;")
    ]
    assert found_in_text("np.testing.assert_allclose(y, 1, rtol=1e-5)")
    assert not found_in_text("const double allowed = ulps * spacing(want);")


def test_every_entry_gives_a_reason():
    assert all(Path(ROOT / name).exists() and reason for name, (_, reason) in LISTED.items())
