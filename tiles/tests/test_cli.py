"""The command line, run in this process on kernels written to files."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import numpy as np
import pytest

from warpwave.tiles.cli import agreement, main
from warpwave.tiles.cli.agreement import compare, fill_outputs
from warpwave.tiles.cli.loading import load_kernel, parse_constant

KERNELS = """
    import numpy as np
    import warpwave as ww
    from warpwave import cdiv, f32, gl, i32, rt

    @ww.kernel
    def axpy(a: gl, x: gl, c: gl, alpha: float = 2.0, *, B=16, wrong=False):
        m, n = ww.grid(cdiv(c.rows, B), cdiv(c.cols, B))
        ww.store(c, (m, n), alpha * ww.load(a, (m, n), rt[f32, B, B]) + ww.load(x, (m, n), rt[f32, B, B]))

    @axpy.samples
    def samples(rng):
        for n in (3, 20):
            a, x = rng.standard_normal((2, n, n), np.float32)
            yield {"a": a, "x": x, "c": np.zeros((n, n), np.float32), "B": 8}

    @ww.kernel
    def first_block(a: gl, c: gl, *, B=4):
        ww.store(c, (0, 0), ww.load(a, (0, 0), rt[f32, B, B]))

    def expected(a, x, c, alpha):
        return {"c": alpha * a + x}

    not_a_kernel = 3
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "user_kernels.py"
    path.write_text(textwrap.dedent(KERNELS))
    return str(path)


def run(capsys, *arguments):
    status = main(list(arguments))
    out = capsys.readouterr()
    return status, out.out, out.err


ARGS = ("f32[20,30]", "f32[20,30]", "f32[20,30]", "f32=3")


def test_check_agrees(file, capsys):
    status, out, _ = run(capsys, "check", f"{file}:axpy", *ARGS, "--targets", "reference")
    assert status == 0
    assert "axpy(a=f32[20,30], x=f32[20,30], c=f32[20,30], alpha=3.0)" in out
    assert "agrees" in out


def test_check_takes_the_kernels_own_samples(file, capsys):
    status, out, _ = run(capsys, "check", f"{file}:axpy", "--targets", "reference", "--json", "--seed", "7")
    report = json.loads(out)
    assert (status, report["agree"], report["status"], report["seed"]) == (0, True, 0, 7)
    assert [c["case"] for c in report["cases"]] == [
        "a=f32[3,3], x=f32[3,3], c=f32[3,3], B=8",
        "a=f32[20,20], x=f32[20,20], c=f32[20,20], B=8",
    ]
    (output,) = report["cases"][1]["results"][0]["outputs"]
    assert output["elements"] == 400
    assert 0 <= output["error"] <= output["bound"] < 1e-5


@pytest.mark.parametrize(("expression", "status"), [("alpha * a + x", 0), ("3 * a + x + 1e-3", 1), ("3 * a - x", 1)])
def test_check_compares_the_users_expression_with_the_oracle(file, capsys, expression, status):
    got, out, _ = run(
        capsys, "check", f"{file}:axpy", *ARGS, "--reference", expression, "--targets", "reference", "--json"
    )
    assert got == status
    user, reference = json.loads(out)["cases"][0]["results"]
    assert (user["target"], reference["target"]) == ("--reference", "reference")
    assert user["outputs"][0]["agree"] == (status == 0)
    assert reference["outputs"][0]["agree"]


def test_check_takes_the_users_function(file, capsys):
    status, _, _ = run(
        capsys, "check", f"{file}:axpy", *ARGS, "--reference", f"{file}:expected", "--targets", "reference"
    )
    assert status == 0


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("a[0]", "it gives shape [30] for c, which is [20, 30]"),
        ("nothing + 1", "NameError"),
        ("{}", "it gives nothing for"),
    ],
)
def test_check_reports_a_broken_expression(file, capsys, expression, text):
    arguments = ("check", f"{file}:axpy", *ARGS, "--reference", expression, "--targets", "reference")
    status, out, _ = run(capsys, *arguments)
    assert status == 2
    assert text in out


def test_check_passes_constants(file, capsys):
    status, out, _ = run(capsys, "check", f"{file}:axpy", *ARGS, "--const", "B=32", "--targets", "reference")
    assert status == 0
    assert "B=32" in out


def test_elements_that_the_kernel_leaves_unwritten_show(file, capsys):
    arguments = ("check", f"{file}:first_block", "f32[6,6]", "f32[6,6]", "--reference", "a", "--targets", "reference")
    status, out, _ = run(capsys, *arguments, "--json")
    assert status == 1
    user = json.loads(out)["cases"][0]["results"][0]
    assert user["outputs"][0]["beyond"] == 36 - 16
    assert user["outputs"][0]["want"] == "nan"


def test_a_crash_of_one_target_is_that_targets_result(file, capsys, monkeypatch):
    def crash(*_):
        raise RuntimeError("the device is gone")

    monkeypatch.setattr(agreement, "run_on", crash)
    status, out, _ = run(capsys, "check", f"{file}:axpy", *ARGS, "--targets", "reference", "--reference", "3 * a + x")
    assert status == 2
    assert "RuntimeError: the device is gone" in out
    assert "agrees" in out


BAD = [
    (("check", "{file}:axpi"), "has no axpi\n  hint: did you mean axpy?"),
    (("check", "{file}:not_a_kernel"), "is no kernel but int"),
    (("check", "nowhere.py:axpy"), "there is no file nowhere.py"),
    (("check", "no.such.module:axpy"), "cannot import no.such.module"),
    (("check", "{file}"), "does not say what to load"),
    (("check", "{file}:first_block"), "has no sample inputs"),
    (("check", "{file}:axpy", "f32[2,2]"), "missing the argument(s) x: gl, c: gl"),
    (("check", "{file}:axpy", *["f32[2,2]"] * 5), "has 4 parameter(s), got 5"),
    (("check", "{file}:axpy", "f33[2,2]"), "there is no dtype 'f33'"),
    (("check", "{file}:axpy", *ARGS[:3], "f32"), "the scalar f32 needs a value"),
    (("check", "{file}:axpy", *ARGS, "--const", "B"), "is not NAME=VALUE"),
    (("check", "{file}:axpy", *ARGS, "--targets", "referense"), "did you mean 'reference'?"),
    (("show", "{file}:axpy", *ARGS, "--asm"), "reference has no asm"),
]


@pytest.mark.parametrize(("arguments", "text"), BAD, ids=lambda x: x if isinstance(x, str) else x[0])
def test_mistakes_give_2_and_the_way_out(file, capsys, arguments, text):
    status, out, err = run(capsys, *(a.replace("{file}", file) for a in arguments))
    assert (status, out) == (2, "")
    assert text in err


def test_an_error_in_the_users_file_is_no_disagreement(tmp_path, capsys):
    path = tmp_path / "broken.py"
    path.write_text("import warpwave as ww\n1 / 0\n")
    status, _, err = run(capsys, "check", f"{path}:k")
    assert status == 2
    assert "ZeroDivisionError" in err
    assert f'File "{path}", line 2' in err


def test_show_prints_each_view(file, capsys):
    shapes = ("f32[?,?]", "f32[?,?]", "f32[?,?]")
    _, ir, _ = run(capsys, "show", f"{file}:axpy", *shapes, "--const", "B=8")
    assert ir.startswith("kernel @axpy(%a: gl<f32, 2d>")
    assert "rt<f32, 8x8>" in ir
    _, why, _ = run(capsys, "show", f"{file}:axpy", *shapes, "--explain")
    assert "B = 16 (default)" in why
    _, source, _ = run(capsys, "show", f"{file}:axpy", "--source", "--target", "reference")
    assert "rt<f32, 8x8>" in source


def test_targets(capsys):
    status, out, _ = run(capsys, "targets", "--json")
    (reference,) = [t for t in json.loads(out)["targets"] if t["name"] == "reference"]
    assert (status, reference["owner"], reference["runs"]) == (0, "warpwave", "NumPy")
    assert "reference" in run(capsys, "targets")[1]


def test_doctor_looks_at_python_packages_and_backends(capsys):
    status, out, _ = run(capsys, "doctor", "--json")
    lines = {(line["part"], line["what"]): line for line in json.loads(out)}
    assert lines["warpwave", "numpy >= 1.26"]["ok"]
    assert lines["reference", "loads"]["ok"]
    assert all(line["ok"] or line["remedy"] for line in lines.values())
    assert status == (0 if all(line["ok"] for line in lines.values()) else 1)


def test_a_command_is_required(capsys):
    with pytest.raises(SystemExit) as info:
        main([])
    assert info.value.code == 2


def test_constants_are_literals_or_text():
    assert parse_constant("a=64") == ("a", 64)
    assert parse_constant("a=(1, 2)") == ("a", (1, 2))
    assert parse_constant("a=ieee") == ("a", "ieee")
    assert parse_constant("a=x=y") == ("a", "x=y")


def test_outputs_are_poisoned_unless_read():
    c, d, n = np.zeros(3, np.float16), np.zeros(3, np.float32), np.zeros(3, np.int32)
    filled = fill_outputs({"c": c, "d": d, "n": n}, ["c", "d", "n"], ["d"])
    assert np.isnan(filled["c"]).all()
    assert filled["d"] is d
    assert (filled["n"] == -1).all()
    assert not np.isnan(c).any()


def wide(*values):
    return np.array(values, np.float64)


@pytest.mark.parametrize(
    ("got", "value", "bound", "beyond"),
    [
        ((1.0, 2.0), (1.0, 2.5), (0.0, 0.5), 0),
        ((1.0, 2.0), (1.0, 2.5), (0.0, 0.4), 1),
        ((1.0,), (1.5,), (0.0,), 1),
        ((np.nan, np.inf, -np.inf), (np.nan, np.inf, -np.inf), (0, 0, 0), 0),
        ((1.0,), (np.nan,), (1.0,), 1),
        ((np.nan,), (1.0,), (1.0,), 1),
        ((np.inf,), (1.0,), (1.0,), 1),
        ((1.0,), (np.inf,), (1.0,), 1),
        ((np.inf,), (-np.inf,), (1.0,), 1),
        ((0.0,), (-0.0,), (0.0,), 0),
        ((7.0,), (1.0,), (np.inf,), 0),
    ],
)
def test_comparison(got, value, bound, beyond):
    result = compare("c", np.array(got, np.float32), wide(*value), wide(*bound))
    assert (result.beyond, result.agree) == (beyond, beyond == 0)
    assert result.unknown == int(np.isinf(bound).sum())


def test_the_worst_element_is_the_one_furthest_beyond_its_bound():
    result = compare(
        "c", np.array([[1.0, 5.0], [2.0, 9.0]], np.float32), np.zeros((2, 2)), wide(10, 1, 0.1, 100).reshape(2, 2)
    )
    assert (result.index, result.got, result.bound, result.ratio, result.max_error) == ((1, 0), 2.0, 0.1, 20.0, 9.0)


def test_a_constant_expectation_is_called_weak():
    assert compare("c", np.zeros(4, np.float32), np.zeros(4), np.zeros(4)).constant
    assert not compare("c", np.arange(4, dtype=np.float32), wide(0, 1, 2, 3), np.zeros(4)).constant
    assert compare("c", np.zeros((0, 4), np.float32), np.zeros((0, 4)), np.zeros((0, 4))).agree


def test_a_file_of_the_library_is_its_module():
    """So that tuned constants, which know kernels by their module, apply to it."""
    import warpwave.kernels.softmax as module

    file = Path(module.__file__).resolve()
    assert load_kernel(f"{file}:softmax") is module.softmax
    assert load_kernel(f"{module.__file__}:softmax") is module.softmax
