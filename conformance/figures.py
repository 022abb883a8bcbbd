"""Known accuracy of the instructions and library functions that a lowering may use."""

from __future__ import annotations

from dataclasses import dataclass

from warpwave.conformance.contract import numerics_of


@dataclass(frozen=True)
class Figure:
    """Largest error in ulps of f32 for normal results; inf where the relative error is not bounded."""

    function: str
    instruction: str
    target: str
    ulps: float
    source: str

    @property
    def allowed(self) -> bool:
        """Whether the contract admits it as the function."""
        return self.ulps <= numerics_of(self.target).functions[self.function].ulps

    @property
    def text(self) -> str:
        """The figure for people."""
        return "unbounded near 1" if self.ulps == float("inf") else f"{self.ulps:g}"


_H200, _GUIDE, _ISA = "H200, exhaustive", "CUDA C++ programming guide", "CDNA3 ISA"
FIGURES = (
    Figure("exp2", "ex2.approx", "nvidia:sm90a", 2.055, _H200),
    Figure("exp", "expf", "nvidia:sm90a", 1.931, _H200),
    Figure("exp", "__expf", "nvidia:sm90a", 63.8, _H200),
    Figure("rcp", "rcp.approx", "nvidia:sm90a", 0.975, _H200),
    Figure("rsqrt", "rsqrt.approx", "nvidia:sm90a", 1.514, _H200),
    Figure("tanh", "tanhf", "nvidia:sm90a", 1.815, _H200),
    Figure("tanh", "tanh.approx", "nvidia:sm90a", 134.0, _H200),
    Figure("erf", "erff", "nvidia:sm90a", 1.037, _H200),
    Figure("log2", "lg2.approx", "nvidia:sm90a", float("inf"), _H200),
    Figure("log", "logf", "nvidia:sm90a", 1.0, _GUIDE),
    Figure("log2", "log2f", "nvidia:sm90a", 1.0, _GUIDE),
    Figure("exp2", "v_exp_f32", "amd:gfx942", 1.0, _ISA),
    Figure("rcp", "v_rcp_f32", "amd:gfx942", 1.0, _ISA),
    Figure("rsqrt", "v_rsq_f32", "amd:gfx942", 1.0, _ISA),
)
