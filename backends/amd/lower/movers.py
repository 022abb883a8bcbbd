"""What brings a tile of a scheduled loop into LDS, part by part: straight, or through registers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from warpwave.backends.amd.lower.context import AmdLowering
from warpwave.backends.amd.lower.direct import Fetch, declare_places, declare_rows, issue_loads, open_fetch
from warpwave.backends.amd.lower.moving import MovingLoad
from warpwave.backends.amd.lower.staged import Waiting, declare_waiting, load_part, load_whole
from warpwave.backends.amd.lower.stages import AmdLoop
from warpwave.backends.amd.schedule.form import Part
from warpwave.tiles.errors import InternalError
from warpwave.tiles.simt.context import both
from warpwave.tiles.simt.memory import Window, open_window
from warpwave.tiles.simt.pipeline import StagedLoad
from warpwave.tiles.simt.shared import write_shared

if TYPE_CHECKING:
    from warpwave.backends.amd.lower.scheduled import Place


@dataclass
class Mover(ABC):
    """One tile's way into LDS. `chunk` are the bytes of a part that lie together, `waves` those that load."""

    loop: AmdLoop
    staged: StagedLoad
    parts: int
    chunk: int
    waves: int
    from_here: str = field(init=False, default="")
    distances: str = field(init=False, default="")
    steps: int = field(init=False, default=0)
    last: str = field(init=False, default="")

    @property
    @abstractmethod
    def moving(self) -> MovingLoad:
        """The tile's pointer."""

    @property
    @abstractmethod
    def possible(self) -> str:
        """Constant C condition that whole tiles can be loaded with constant offsets."""

    @abstractmethod
    def open(self) -> None:
        """Declare the pointer; the first step's coordinates have names."""

    @abstractmethod
    def declare(self) -> None:
        """Declare each lane's offsets from the pointer."""

    @abstractmethod
    def define_any(self, whole: str) -> None:
        """Define functions that load a part of any step, also past the last one; the first `whole` are whole."""

    @abstractmethod
    def load(self, value: Part, place: Place) -> None:
        """Load a part of a step counted from the place's."""

    def put(self, value: Part, place: Place) -> None:
        """Write what has arrived in registers to LDS."""
        raise InternalError(f"{value.tile} does not go through registers", loc=self.loop.op.loc)

    def start(self, steps: int, last: str) -> None:
        """Begin rounds that load so many `steps` on at most, or the `last` whole tile if that is given and nearer."""
        lw = self.loop.lw
        self.from_here, self.steps, self.last = lw.fresh("from"), steps, last
        lw.body.line(f"auto {self.from_here} = {self.moving.next};")
        if last:
            self.distances = lw.fresh("moved")
            lw.body.line(f"int {self.distances}[{steps}];")
            self.stop_at_last()

    def stop_at_last(self) -> None:
        """What is past the last whole tile is that one from here on: nobody uses it."""
        with self.loop.lw.body.each(self.steps):
            self.loop.lw.body.line(f"{self.distances}[i] = smaller(i, {self.last}) * (int){self.moving.advance};")

    def advance(self, steps: int) -> None:
        """The next round."""
        self.loop.lw.body.line(f"{self.from_here} += {steps} * {self.moving.advance};")

    def moved(self, value: Part, place: Place) -> str:
        """Bytes from the round's pointer to a step, the same for all lanes."""
        if self.last:
            return f"{self.distances}[{place.stage} + {value.step}]"
        return f"({place.stage} + {value.step}) * (int){self.moving.advance}"

    def at(self, step: str) -> str:
        """Pointer to the tile of a step."""
        return f"{self.moving.next} + ({step}) * {self.moving.advance}"

    def window(self) -> Window:
        """Where the tile lies in the tensor, by coordinates that have names."""
        tensor, _, *coords = self.staged.op.operands
        return open_window(self.loop.lw, tensor, coords, self.staged.tile, self.staged.op)


def slot(stage: str, step: int, stages: int) -> str:
    """C expression of the stage `step` steps on."""
    return f"({stage} + {step if step == stages else step % stages}) % {stages}"


class DirectMover(Mover):
    """Straight to LDS."""

    fetches: list[Fetch]
    names: list[str]

    @property
    def moving(self) -> MovingLoad:
        """The tile's pointer."""
        return self.fetches[0].moving

    @property
    def possible(self) -> str:
        """Constant C condition that whole tiles can be loaded so."""
        return self.fetches[0].possible

    def open(self) -> None:
        """Declare the tile's pointer."""
        lw = self.loop.lw
        whole = open_fetch(lw, self.loop.op, self.staged, self.parts, self.chunk, self.waves)
        self.fetches = [whole.of_part(part, lw.fresh) for part in range(self.parts)]

    def declare(self) -> None:
        """Declare each lane's offsets, by the number of its wave among those that load."""
        for fetch in self.fetches:
            declare_places(self.loop.lw, fetch)

    def define_any(self, whole: str) -> None:
        """A function for each part."""
        lw = self.loop.lw
        self.names = [lw.fresh("bring") for _ in self.fetches]
        for name, fetch in zip(self.names, self.fetches, strict=True):
            target = self.staged.at(slot("step", self.loop.stages, self.loop.stages))
            with lw.body.block(f"const auto {name} = [&](int step) LAMBDA", "};"):
                with lw.body.block(f"if ((u32)step < (u32){whole})"):
                    issue_loads(lw, fetch, target, self.at("step"), "0")
                with lw.body.block("else"):
                    self.loop.coordinates_at("step")
                    window = self.window()
                    source = f"(const GLOBAL char *){window.tensor}.at({window.element}) - {fetch.before}"
                    rows, cols = lw.fresh("row"), lw.fresh("col")
                    lw.body.line("const int here = only_here(lane);")  # in no register across the rounds
                    declare_rows(lw, fetch, rows, cols, "here")
                    places = [f"{name}[{{i}}]" for name in (rows, cols)[-self.staged.tile.rank :]]
                    inside = both(f"(u32)step < (u32){self.loop.trips}", fetch.moving.inside_moving(window, places))
                    issue_loads(lw, fetch, target, source, "0", inside)

    def load(self, value: Part, place: Place) -> None:
        """Issue the loads of a part."""
        if place.whole:
            target = self.staged.at(slot(place.stage, value.step, self.loop.stages))
            issue_loads(self.loop.lw, self.fetches[value.part], target, self.from_here, self.moved(value, place))
        else:
            self.loop.lw.body.line(f"{self.names[value.part]}({place.step} + {value.step});")


class StagedMover(Mover):
    """Through registers."""

    tile: Waiting
    name: str

    @property
    def moving(self) -> MovingLoad:
        """The tile's pointer."""
        return self.tile.moving

    @property
    def possible(self) -> str:
        """Constant C condition that whole tiles can be loaded so."""
        return self.tile.possible

    def open(self) -> None:
        """Declare the tile's pointer and each lane's offsets."""
        self.tile = declare_waiting(self.loop.lw, self.loop.op, self.staged)

    def declare(self) -> None:
        """Nothing more: the offsets are there since `open`."""

    def define_any(self, whole: str) -> None:
        """A function for each part."""
        lw, tile = self.loop.lw, self.tile
        assert isinstance(lw, AmdLowering)
        self.name = lw.fresh("bring")
        with lw.body.block(f"const auto {self.name} = [&](int step) LAMBDA", "};"):
            with lw.body.block(f"if ((u32)step < (u32){whole})"):
                load_whole(lw, tile, self.at("step"))
            with lw.body.block("else"):
                self.loop.coordinates_at("step")
                window = self.window()
                source = f"(const GLOBAL char *){window.tensor}.at({window.element})"
                with lw.anew():  # in no register across the rounds
                    load_part(lw, tile, window, source, f"(u32)step < (u32){self.loop.trips}")

    def load(self, value: Part, place: Place) -> None:
        """Issue the loads of a part."""
        if place.whole:
            load_whole(self.loop.lw, self.tile, self.from_here, self.moved(value, place))
        else:
            self.loop.lw.body.line(f"{self.name}({place.step} + {value.step});")

    def put(self, value: Part, place: Place) -> None:
        """Write what has arrived to LDS."""
        target = self.staged.at(slot(place.stage, value.step, self.loop.stages))
        write_shared(self.loop.lw, target, self.tile.name, self.tile.layout, self.staged.tile, ordered=True)
