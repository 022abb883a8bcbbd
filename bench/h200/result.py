"""What came of one row, as it stands in the record."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Result:
    """What came of one row. Rates are TFLOP/s or TB/s; `ratio` compares with the better peer, above 1 is faster."""

    name: str
    at_least: float
    aim: float
    neighbour: str = ""
    times: dict[str, dict[str, float]] = field(default_factory=dict)
    rate: float = 0.0
    unit: str = ""
    peer: str = ""
    ratio: float = 0.0
    share_of_copy: float = 0.0
    error_share: float = 0.0
    clock_mhz: str = ""
    problem: str = ""
    peer_problems: dict[str, str] = field(default_factory=dict)
