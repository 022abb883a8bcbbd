"""`warpwave sim`: what it prints, what it saves, and its exit codes."""

from __future__ import annotations

import argparse
import json

import ml_dtypes
import numpy as np
import pytest

from warpwave.backends.amd import sim
from warpwave.backends.amd.sim import _arguments, cli

from . import _compile

TARGET = "gfx950"
SOURCE = _compile.HERE / "hip" / "runtime.hip"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The kernels as assembly and as a code object, with source lines."""
    folder = tmp_path_factory.mktemp("cli")
    text = _compile.hip(SOURCE, TARGET, "-g")
    (folder / "k.s").write_text(text)
    (folder / "k.hsaco").write_bytes(_compile.assemble(text, TARGET).read_bytes())
    return {"asm": str(folder / "k.s"), "object": str(folder / "k.hsaco")}


def command(*words: str) -> int:
    parser = argparse.ArgumentParser()
    cli.COMMAND.add_arguments(parser)
    return cli.COMMAND.run(parser.parse_args([str(w) for w in words]))


VALUES = ("c:f32[100]=nan", "a:f32[100]=arange", "b:f32[100]=0.5", "i32=100")
ADD = (*VALUES, "--kernel", "vector_add", "--grid", "2")


@pytest.mark.parametrize("form", ["asm", "object"])
def test_runs_saves_and_reports(files, form, tmp_path, capsys):
    out = tmp_path / "c.npy"
    assert command(files[form], *ADD, "--out", out) == 0
    assert np.array_equal(np.load(out), np.arange(100, dtype=np.float32) + 0.5)
    printed = capsys.readouterr().out
    assert "vector_add on simulated gfx950" in printed
    assert "2 in 2 workgroups" in printed
    assert "800 loaded, 400 stored" in printed


def test_both_forms_report_the_same(files, capsys):
    reports = []
    for form in ("asm", "object"):
        assert command(files[form], *ADD, "--json") == 0
        report = json.loads(capsys.readouterr().out)
        executed = [(i["text"], i["executed"], i["source"].rsplit("/")[-1]) for i in report.pop("listing_lines")]
        kept = [(t, n, s) for t, n, s in executed if n and not t.startswith(("s_cbranch", "s_branch"))]
        reports.append((report["by_class"], report["instructions"], kept))
    assert reports[0] == reports[1]


def test_listing_has_counts_and_source_lines(files, capsys):
    assert command(files["object"], *ADD, "--listing") == 0
    stores = [line for line in capsys.readouterr().out.splitlines() if "global_store_dword" in line]
    counted = [line for line in stores if " 400 " in line]
    assert len(counted) == 1
    assert "runtime.hip:" in counted[0]


def test_trace_shows_values(files, capsys):
    assert command(files["asm"], *ADD, "--trace", "1:0") == 0
    printed = capsys.readouterr().out
    add = next(line for line in printed.splitlines() if "v_add_f32" in line)
    value = np.float32(64.5).view(np.uint32)
    assert f"={value:#x}" in add
    assert " 36 " in add  # 100 - 64 lanes are active


def test_out_may_name_the_buffer(files, tmp_path):
    assert command(files["asm"], *ADD, "--out", f"b={tmp_path / 'x.npy'}", "--out", tmp_path / "c.npy") == 0
    assert set(np.load(tmp_path / "x.npy")) == {0.5}


def test_violation_is_exit_code_1(files, capsys):
    words = [w.replace("i32=100", "i32=101") for w in ADD]
    assert command(files["object"], *words) == 1
    error = capsys.readouterr().err
    assert "bounds" in error
    assert "global_load_dword" in error
    assert "runtime.hip" in error
    assert command(files["object"], *words, "--json") == 1
    violation = json.loads(capsys.readouterr().out)["violation"]
    assert violation["kind"] == "bounds"
    assert violation["lanes"] == 1 << 36


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--kernel", "nothing"), "no kernel 'nothing'; the file has"),
        ((), "name one with --kernel; the file has"),
        (("f32=1", "f33[2]=1", "--kernel", "vector_add"), "unknown type 'f33'"),
        (("what", "--kernel", "vector_add"), "cannot read the argument 'what'"),
        (("f32[4]=0x", "--kernel", "vector_add"), "'0x' is neither a number nor a known fill"),
        (("u8=256", "--kernel", "vector_add"), "256 is no uint8: a whole number from 0 to 255"),
        (("f32[4]=zeros", "--kernel", "vector_add", "--out", "d.npy"), "no buffer is named 'd'; buffers: arg0"),
        (("f32[4]=zeros", "--kernel", "vector_add"), "vector_add takes 4 arguments"),
        (
            ("f32=0", "f32[4]=zeros", "f32[4]=zeros", "i32=1", "--kernel", "vector_add"),
            "a pointer; float32, 4 bytes was given",
        ),
        (
            ("i64=0", "i64=0", "i64=0", "f32[4]=zeros", "--kernel", "vector_add"),
            "an array of float32 was given",
        ),
        (("i32=inf", "--kernel", "vector_add"), "inf is no int32"),
        (("f32[4]=randn:x", "--kernel", "vector_add"), "the seed of randn is a whole number"),
        (("f32[4]=@/nonexistent/x.npy", "--kernel", "vector_add"), "/nonexistent/x.npy: No such file"),
        (("c:f32[4]=zeros", "--kernel", "vector_add", "--out", "c=/nonexistent/c.npy"), "no folder /nonexistent"),
        ((*ADD, "--relax", "everything"), "everything"),
        ((*ADD, "--seed", "-1"), "seed is -1; it cannot be negative"),
        ((*ADD, "--trace", "2:0"), "no wave of this launch"),
        ((*ADD, "--block", "2048"), "compiled for 1024 work-items, 2048 asked for"),
        ((*ADD, "--target", "gfx942"), "gfx950, not gfx942"),
    ],
    ids=lambda w: w if isinstance(w, str) else "",
)
def test_wrong_use_is_exit_code_2(files, words, message, capsys):
    assert command(files["asm"], *words) == 2
    assert message in capsys.readouterr().err.replace("\n", " ")


def test_missing_file_is_exit_code_2(capsys):
    assert command("/nonexistent/k.s") == 2
    assert "/nonexistent/k.s" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--grid", "0"), "'0' is not one to three positive numbers"),
        (("--grid", "1,2,3,4"), "'1,2,3,4' is not one to three positive numbers"),
        (("--block", "x"), "'x' is not one to three positive numbers"),
        (("--trace", "x"), "'x' is not a wave, or a workgroup and a wave such as 3:0"),
    ],
)
def test_bad_options_are_refused_by_the_parser(files, words, message, capsys):
    with pytest.raises(SystemExit) as stopped:
        command(files["asm"], *words)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "dtype", "values"),
    [
        ("f32[2,3]=arange", np.float32, [[0, 1, 2], [3, 4, 5]]),
        ("i8[3]=-5", np.int8, [-5, -5, -5]),
        ("u32[2]=0xffffffff", np.uint32, [0xFFFFFFFF] * 2),
        ("f16[2]=ones", np.float16, [1, 1]),
        ("bf16[1]=1e-3", ml_dtypes.bfloat16, [ml_dtypes.bfloat16(1e-3)]),
        ("e4m3[1]=448", ml_dtypes.float8_e4m3fn, [448]),
        ("x:f64[0]=zeros", np.float64, []),
    ],
)
def test_fills(text, dtype, values):
    array = _arguments.parse(text, 0).value
    assert array.dtype == np.dtype(dtype)
    assert array.tolist() == np.array(values, dtype).tolist()


def test_random_fills_are_numpys_and_repeat():
    want = np.random.default_rng(7).standard_normal((4, 5)).astype(ml_dtypes.bfloat16)
    for _ in range(2):
        assert np.array_equal(_arguments.parse("bf16[4,5]=randn:7", 0).value, want)
    assert not np.array_equal(_arguments.parse("bf16[4,5]=randn:8", 0).value, want)


def test_files_as_arguments(tmp_path):
    path = tmp_path / "x.npy"
    values = np.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16)
    np.save(path, values)
    assert np.array_equal(_arguments.parse(f"bf16[2,3]=@{path}", 0).value, values)
    with pytest.raises(_arguments.ArgumentError, match=r"has shape \(2, 3\), the argument \(3, 2\)"):
        _arguments.parse(f"bf16[3,2]=@{path}", 0)
    path.write_text("no array")
    with pytest.raises(_arguments.ArgumentError, match=r"is no \.npy file of numbers"):
        _arguments.parse(f"bf16[3,2]=@{path}", 0)


def test_scalars_and_names():
    argument = _arguments.parse("alpha:f32=-1.5", 3)
    assert (argument.name, argument.value, argument.value.dtype, argument.is_buffer) == (
        "alpha",
        np.float32(-1.5),
        np.float32,
        False,
    )
    assert _arguments.parse("i64=-9223372036854775808", 3).value == np.int64(-(2**63))
    assert _arguments.parse("i32=1", 3).name == "arg3"


def test_report_is_data_too(files):
    program = sim.load(files["asm"])
    c, a, b = np.zeros(64, np.float32), np.ones(64, np.float32), np.ones(64, np.float32)
    report = program.launch("vector_add", (1,), (64,), [c, a, b, np.int32(64)])
    assert sum(report.by_class().values()) == report.instructions == sum(report.by_mnemonic().values())
    assert (report.bytes_loaded, report.bytes_stored) == (512, 256)
    loads = [line for line in report.listing_lines if line.executed and line.text.startswith("global_load")]
    assert {line.coalescing for line in loads} <= {1.0, 256 / 384}  # 256 bytes from two or three lines
    assert json.dumps(report.to_dict())
