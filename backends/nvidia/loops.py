"""The loops of disassembled code, found in its control flow: blocks of one loop need not lie side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warpwave.backends.nvidia.sass import Instruction

_MATRIX = ("HGMMA", "QGMMA", "IGMMA", "HMMA", "QMMA", "IMMA", "DMMA")
_ENDS = ("BRA", "EXIT", "RET", "JMP", "BRX")

Block = range


def hot_loop(instructions: Sequence[Instruction], labels: Mapping[str, int]) -> list[int]:
    """Indices of the innermost loop with matrix instructions, else of the longest innermost one; empty if none.

    A loop inside that only waits for a barrier does not make its surroundings less hot.
    """
    if not instructions:
        return []
    found = loops(instructions, labels)
    matrix = {i for i, instruction in enumerate(instructions) if instruction.kind in _MATRIX}
    products = [loop for loop in found if loop & matrix]

    def heat(loop: set[int]) -> tuple[int, int]:
        return len(loop & matrix), len(loop)

    if not found:
        return []
    hottest: set[int] = max(_innermost(products or found), key=heat)
    return sorted(hottest)


def _innermost(found: Sequence[set[int]]) -> list[set[int]]:
    return [loop for loop in found if not any(other < loop for other in found)]


def loops(instructions: Sequence[Instruction], labels: Mapping[str, int]) -> list[set[int]]:
    """The natural loops as sets of instruction indices; those with one header are one."""
    blocks, successors = _control_flow(instructions, labels)
    dominators = _dominators(successors)
    bodies: dict[int, set[int]] = {}
    for source, targets in enumerate(successors):
        for header in targets:
            if header in dominators[source]:  # a branch back
                bodies.setdefault(header, {header}).update(_reaching(source, header, successors))
    return [{i for block in body for i in blocks[block]} for body in bodies.values()]


def _control_flow(
    instructions: Sequence[Instruction], labels: Mapping[str, int]
) -> tuple[list[Block], list[list[int]]]:
    """Basic blocks, and for each the blocks that may follow it."""
    starts = {0, *(place for place in labels.values() if place < len(instructions))}
    starts |= {i + 1 for i, instruction in enumerate(instructions) if instruction.kind in _ENDS}
    starts.discard(len(instructions))
    order = sorted(starts)
    number = {start: index for index, start in enumerate(order)}
    blocks = [range(a, b) for a, b in zip(order, [*order[1:], len(instructions)], strict=True)]
    successors: list[list[int]] = []
    for block in blocks:
        last = instructions[block.stop - 1]
        target = labels.get(last.jumps_to) if last.kind == "BRA" else None
        following = [number[target]] if target in number else []
        if not last.always_leaves and block.stop in number:
            following.append(number[block.stop])
        successors.append(following)
    return blocks, successors


def _dominators(successors: Sequence[Sequence[int]]) -> list[set[int]]:
    """For each block those that every way to it from the first passes; none are reached from nowhere."""
    count = len(successors)
    before: list[list[int]] = [[] for _ in range(count)]
    for source, targets in enumerate(successors):
        for target in targets:
            before[target].append(source)
    found = [{0} if block == 0 else set(range(count)) for block in range(count)]
    changed = True
    while changed:
        changed = False
        for block in range(1, count):
            ways = [found[b] for b in before[block]]
            new = {block} | (set.intersection(*ways) if ways else set())
            changed = changed or new != found[block]
            found[block] = new
    return found


def _reaching(source: int, header: int, successors: Sequence[Sequence[int]]) -> set[int]:
    """The blocks from which `source` is reached without passing the header, and itself."""
    found = {source}
    grown = source != header
    while grown:
        grown = False
        for block, targets in enumerate(successors):
            if block != header and block not in found and found & set(targets):
                found.add(block)
                grown = True
    return found
