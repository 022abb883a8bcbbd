"""The variants of an instruction worth running: encodings, operand kinds, modifiers, modes and masks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ._operands import FIRST_S, FIRST_V, RESULT_S, RESULT_V, Case
from .model.machine import Spec

FLOATS = ("f16", "h16", "bf16", "f32", "f64", "x16", "xh16", "x32", "x64", "m16", "m32", "m64")
SELECTORS = ("BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD")
UNUSED = ("UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE")
PARTIAL = (0x0000FFFF0F0F5555, 0x8000000000000001, 0)
CONSTANTS = {
    "f": ("0.5", "-4.0", "0.15915494", "1", "-16", "64", "0x3fc00000"),
    "i": ("0", "-1", "64", "-16", "17", "1.0", "0x12345678"),
}
MODES = [0x3F0 & ~0xF | r | r << 2 for r in (1, 2, 3, 0)] + [0x300 | d << 4 | d << 6 for d in range(4)]
NO_IEEE_NO_DENORM = 0x100  # the only mode in which output modifiers count
DPP_SHORT = ("quad_perm:[1,2,3,0]", "row_shr:1", "row_bcast:15", "row_half_mirror")
DPP_ALL = (
    [f"quad_perm:[{a},{b},{c},{d}]" for a, b, c, d in product(range(4), repeat=4)]
    + [f"row_{move}:{n}" for move in ("shl", "shr", "ror") for n in range(1, 16)]
    + [f"wave_{move}:1" for move in ("shl", "rol", "shr", "ror")]
    + ["row_mirror", "row_half_mirror", "row_bcast:15", "row_bcast:31"]
)
DPP_NEW = [f"row_newbcast:{n}" for n in range(16)]
DPP_EXHAUSTIVE = {"v_mov_b32", "v_add_u32", "v_add_f32"}


def source(kind: str, position: int, form: str = "v") -> str:
    """Operand text: a vector register (pair), a scalar register (pair), or the text itself."""
    wide = kind.endswith("64")
    if kind == "c" or (form == "s" and wide):
        first = FIRST_S + 4 + 4 * position
        return f"s[{first}:{first + 1}]"
    if form == "s":
        return f"s{FIRST_S + 1 + 4 * position}"
    if form != "v":
        return form
    first = FIRST_V + 2 * position
    return f"v[{first}:{first + 1}]" if wide else f"v{first}"


def listed(spec: Spec) -> list[str]:
    """The source kinds that the assembler text shows."""
    return [k for k in spec.src if k not in ("vcc", "scc", "machine") and not k.startswith("d.")]


class Writer:
    """Builds the cases of one vector instruction."""

    def __init__(self, name: str, spec: Spec) -> None:
        self.name, self.spec = name, spec
        self.kinds = listed(spec)
        self.values = [k for k in self.kinds if k != "c"]
        self.compare = spec.dst[0] == "c"
        self.float = any(k in FLOATS for k in self.kinds)
        self.vectors = 2 if spec.dst[0] in ("f64", "u64") else 0 if self.compare else 1

    @property
    def float_selector(self) -> str:
        """Negating a part of a float has no meaning: the whole operand, or a word of f16."""
        return "WORD_1" if any(k in ("f16", "x16", "m16") for k in self.values) else "DWORD"

    def destination(self, suffix: str) -> list[str]:
        mask = "vcc" if suffix in ("_e32", "_sdwa", "_dpp") else f"s[{RESULT_S}:{RESULT_S + 1}]"
        names = []
        for kind in self.spec.dst:
            if kind == "c":
                names.append(mask)
            elif kind != "exec":
                wide = kind.endswith("64")
                names.append(f"v[{RESULT_V}:{RESULT_V + 1}]" if wide else f"v{RESULT_V}")
        return names

    def case(self, suffix: str, sources: list[str], tail: str = "", **state) -> Case:
        mask_in = "vcc" if suffix in ("_e32", "_sdwa", "_dpp") else source("c", 2)
        texts, values = [], iter(sources)
        for kind in self.kinds:
            texts.append(mask_in if kind == "c" else next(values))
        text = f"{self.name}{suffix} {', '.join(self.destination(suffix) + texts)} {tail}".strip()
        has_mask = "c" in self.spec.dst
        return Case(text, self.vectors, 2 if has_mask else 0, masks=has_mask, **state)

    def plain(self) -> list[str]:
        return [source(k, i) for i, k in enumerate(self.values)]

    def with_source(self, index: int, text: str) -> list[str]:
        return [text if i == index else s for i, s in enumerate(self.plain())]

    def operand_forms(self, suffix: str) -> Iterator[Case]:
        yield self.case(suffix, self.plain())
        for index, kind in enumerate(self.values):
            if suffix == "_e32" and index:
                continue
            yield self.case(suffix, self.with_source(index, source(kind, index, "s")))
            for constant in self.constants(kind):
                yield self.case(suffix, self.with_source(index, constant))

    @staticmethod
    def constants(kind: str) -> tuple[str, ...]:
        if kind in ("f64", "x64", "m64"):
            return tuple("0.15915494309189532" if c == "0.15915494" else c for c in CONSTANTS["f"])
        if kind in ("u16", "i16", "hu16", "hi16"):
            # Float constants "appear to not work" in 16-bit integer operands (LLVM bug 46302).
            return tuple(c for c in CONSTANTS["i"] if c != "1.0")
        return CONSTANTS["f" if kind in FLOATS else "i"]

    def input_modifiers(self, suffix: str) -> Iterator[Case]:
        floats = [k in FLOATS for k in self.values]
        choices = [("{}", "-{}", "|{}|", "-|{}|") if f else ("{}",) for f in floats]
        for combination in product(*choices):
            texts = [m.format(s) for m, s in zip(combination, self.plain(), strict=True)]
            yield self.case(suffix, texts)

    def output_modifiers(self, suffix: str) -> Iterator[Case]:
        for tail in ("clamp", "mul:2", "mul:4", "div:2", "clamp mul:2"):
            yield self.case(suffix, self.plain(), tail)
            yield self.case(suffix, self.plain(), tail, mode=NO_IEEE_NO_DENORM)

    def op_sel(self) -> Iterator[Case]:
        count = len(self.values) + (self.spec.dst[0] in ("h16", "hu16", "hi16"))
        for bits in product("01", repeat=count):
            yield self.case("", self.plain(), f"op_sel:[{','.join(bits)}]")

    def sdwa(self) -> Iterator[Case]:
        tails = [f"src0_sel:{a}" for a in SELECTORS]
        if len(self.values) > 1:
            tails = [f"src0_sel:{a} src1_sel:{b}" for a, b in product(SELECTORS, SELECTORS)]
        head = "" if self.compare else "dst_sel:DWORD dst_unused:UNUSED_PAD "
        for tail in tails:
            yield self.case("_sdwa", self.plain(), head + tail)
        plain_tail = " ".join(f"src{i}_sel:DWORD" for i in range(len(self.values)))
        if not self.compare:
            for sel, unused in product(SELECTORS, UNUSED):
                yield self.case("_sdwa", self.plain(), f"dst_sel:{sel} dst_unused:{unused} {plain_tail}")
        marks = ("-{}", "|{}|") if self.float else ("sext({})",)
        for mark, index in product(marks, range(len(self.values))):
            for sel in ("BYTE_1", "WORD_1", "DWORD") if not self.float else (self.float_selector,):
                tail = " ".join(f"src{i}_sel:{sel}" for i in range(len(self.values)))
                yield self.case("_sdwa", self.with_source(index, mark.format(self.plain()[index])), head + tail)

    def dpp(self, target: str) -> Iterator[Case]:
        controls = DPP_SHORT
        if self.name in DPP_EXHAUSTIVE:
            controls = DPP_ALL + (DPP_NEW if target in ("gfx942", "gfx950") else [])
        for control in controls:
            for masks in ("row_mask:0xf bank_mask:0xf", "row_mask:0xa bank_mask:0x6"):
                for bound in ("", " bound_ctrl:0"):
                    yield self.case("_dpp", self.plain(), f"{control} {masks}{bound}")
        for control in DPP_SHORT:
            for bound in ("", " bound_ctrl:0"):
                tail = f"{control} row_mask:0xf bank_mask:0xf{bound}"
                yield self.case("_dpp", self.plain(), tail, exec=PARTIAL[0])

    def states(self, suffix: str) -> Iterator[Case]:
        for mask in PARTIAL:
            yield self.case(suffix, self.plain(), exec=mask)
        if self.float and "_class_" not in self.name:
            # Directed rounding of doubles is checked against exact rationals elsewhere.
            for mode in MODES[3:] if any(k.endswith("64") for k in self.values + self.spec.dst) else MODES:
                yield self.case(suffix, self.plain(), mode=mode)


def vector_cases(name: str, spec: Spec, target: str) -> list[Case]:
    """Every variant; the assembler later says which of them the encoding allows."""
    writer = Writer(name, spec)
    cases = [*writer.operand_forms(""), *writer.states("")]
    for suffix in ("_e32", "_e64"):
        cases += writer.operand_forms(suffix)
    for suffix in ("", "_e64"):
        cases += writer.input_modifiers(suffix)
        cases += writer.output_modifiers(suffix)
    if any(k in ("h16", "hu16", "hi16", "xh16") for k in writer.kinds):
        cases += writer.op_sel()
    if not name.startswith("v_mad_u64") and len(writer.values) <= 2:
        cases += [*writer.sdwa(), *writer.dpp(target)]
    return list(dict.fromkeys(cases))


def scalar_source(kind: str, position: int) -> str:
    first = FIRST_S + 4 * position
    return f"s[{first}:{first + 1}]" if kind.endswith("64") else f"s{first}"


def scalar_cases(name: str, spec: Spec) -> list[Case]:
    """Registers, inline constants and literals in each source of a scalar instruction."""
    kinds = listed(spec)
    destination = [k for k in spec.dst if k != "scc"]
    wide = destination and destination[0].endswith("64")
    result = f"s[{RESULT_S}:{RESULT_S + 1}]" if wide else f"s{RESULT_S}"
    heads = [result] if destination else []
    scalars = (2 if wide else 1) if destination else 0
    immediates = ("0", "5", "0x7fff", "0x8000", "0xffff", "-1", "-300")
    constants = ("0", "-1", "64", "-16", "1.0", "0x12345678")
    cases = []
    plain = [scalar_source(k, i) for i, k in enumerate(kinds)]
    choices = [plain]
    for index, kind in enumerate(kinds):
        for constant in immediates if kind.startswith("sk") else constants:
            choices.append([constant if i == index else s for i, s in enumerate(plain)])
    for sources in choices:
        if any(k.startswith("sk") and s.startswith("s") for k, s in zip(kinds, sources, strict=True)):
            continue
        cases.append(Case(f"{name} {', '.join(heads + sources)}", 0, scalars, masks=True))
    return cases


PACKED_BITS = list(product("01", repeat=2))


def packed_cases(name: str, sources: int, wide: bool) -> list[Case]:
    """All op_sel and op_sel_hi settings, all negations, scalars, constants, clamp, partial EXEC, modes."""
    kind = "u64" if wide else "u32"
    result = f"v[{RESULT_V}:{RESULT_V + 1}]" if wide else f"v{RESULT_V}"
    plain = [source(kind, i) for i in range(sources)]
    vectors = 2 if wide else 1

    def case(tail: str = "", texts: list[str] | None = None, **state) -> Case:
        return Case(f"{name} {result}, {', '.join(texts or plain)} {tail}".strip(), vectors, **state)

    cases = [case(), case("clamp")]
    bits = [",".join(x) for x in product("01", repeat=sources)]
    cases += [case(f"op_sel:[{a}] op_sel_hi:[{b}]") for a, b in product(bits, bits)]
    floats = name.endswith(("f16", "f32"))
    if floats:
        cases += [case(f"neg_lo:[{a}] neg_hi:[{b}]") for a, b in product(bits, bits)]
    for index in range(sources):
        scalar = [source(kind, i, "s") if i == index else s for i, s in enumerate(plain)]
        cases += [case(texts=scalar), case(f"op_sel_hi:[{','.join(['0'] * sources)}]", scalar)]
        for constant in ("1.0", "-0.5") if floats else ("7", "-3"):
            texts = [constant if i == index else s for i, s in enumerate(plain)]
            cases.append(case(f"op_sel_hi:[{','.join(['0'] * sources)}]", texts))
    cases += [case(exec=mask) for mask in PARTIAL]
    return cases + [case(mode=mode) for mode in MODES]


def mix_cases(name: str) -> list[Case]:
    """Mixed precision: which operands are f16 and which half, absolute and negated."""
    cases = []
    for hi, lo in product(product("01", repeat=3), product("01", repeat=3)):
        tail = f"op_sel:[{','.join(lo)}] op_sel_hi:[{','.join(hi)}]"
        cases.append(Case(f"{name} v{RESULT_V}, v8, v10, v12 {tail}"))
    for marks in product(("{}", "-{}", "|{}|", "-|{}|"), repeat=3):
        texts = [m.format(f"v{8 + 2 * i}") for i, m in enumerate(marks)]
        cases.append(Case(f"{name} v{RESULT_V}, {', '.join(texts)}"))
    cases.append(Case(f"{name} v{RESULT_V}, v8, s25, v12 op_sel_hi:[1,1,0]"))
    return cases + [Case(f"{name} v{RESULT_V}, v8, v10, v12", exec=mask) for mask in PARTIAL]
