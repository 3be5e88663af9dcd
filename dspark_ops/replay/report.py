"""The complete report: every machine, load and way of coming, every budget and policy, and the ranks' rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..calibration import Samples, fit_affine, fit_affine_offset, fit_sts
from ..calibration.samples import GREEDY, recorded_acceptance
from ..calibration.tables import Calibration
from ..cost import StepCost
from ..cost.cells import CostCells
from ..ops.plan_budget import plan_budget
from ..ops.prefix_survival import prefix_survival
from ..trace import Trace
from .demo import HEADS
from .ranks import MIXES, compare_rules
from .scenes import Scene, scenes
from .study import Recorded, Run, study, table
from .timeline import DRIFT, Load, timeline

NOTE = (
    "step resampling: every policy meets the same recorded steps, whatever it commits of them; seconds are those of "
    "the machine's table; the best fixed length and threshold are chosen in hindsight; text equality is not claimed"
)
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Options:
    """What to report on.

    Args:
        slots: loads B, each replayed with every slot busy; the middle one also with arrivals and with drift.
        head: "z_refit" or "z".
        calibrations: by name; the planner is also run with each.
        held_out: fit calibrations to every second request, and replay only the others.
        rank_steps: steps of the ranks' comparison; 0 leaves it out.
        max_steps: bound on the steps of a replay.
    """

    slots: tuple[int, ...] = (8, 16, 32)
    head: str = "z_refit"
    calibrations: tuple[tuple[str, Calibration], ...] = ()
    held_out: bool = False
    rank_steps: int = 300
    max_steps: int | None = None

    def __post_init__(self) -> None:
        if not self.slots or min(self.slots) < 1:
            raise ValueError(f"slots: expected at least one load, each at least 1, got {list(self.slots)}")
        if self.head not in HEADS:
            raise ValueError(f"head: expected one of {', '.join(HEADS)}, got {self.head!r}")
        if self.rank_steps < 0:
            raise ValueError(f"rank_steps: expected at least 0, got {self.rank_steps}")

    def loads(self) -> list[Load]:
        """Every load that is replayed. Arrivals keep the middle load's slots about three quarters busy."""
        middle = self.slots[len(self.slots) // 2]
        full = [Load(slots, max_steps=self.max_steps) for slots in self.slots]
        # A request of this trace takes about 50 steps.
        arriving = Load(middle, arrivals=0.75 * middle / 50, max_steps=self.max_steps)
        return [*full, arriving, Load(middle, order=DRIFT, max_steps=self.max_steps)]


class Section(NamedTuple):
    """One table: a machine under a load."""

    scene: Scene
    load: Load
    runs: list[Run]

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "scene": self.scene.name,
            "note": self.scene.note,
            "slots": self.load.slots,
            "arrivals": self.load.arrivals,
            "order": self.load.order,
            "mean_requests": self.runs[0].requests / self.runs[0].steps,
            "lines": table(self.runs),
        }


class Setting(NamedTuple):
    """What is replayed, and with which calibrations."""

    trace: Trace
    recorded: Recorded
    greedy: bool
    among: Sequence[int] | None  # requests
    calibrations: dict[str, Calibration]


def setting(trace: Trace, options: Options) -> Setting:
    """The given calibrations, checked, and those that are fitted here."""
    acceptance, among, calibrations = recorded_acceptance(trace), None, dict(options.calibrations)
    for calibration in calibrations.values():
        calibration.check_serves(trace.gamma, acceptance)
    if options.held_out:
        number = np.cumsum(trace.step == 0) - 1
        among = range(0, int(number[-1]) + 1, 2)
        training = Samples.from_trace(trace, options.head, acceptance)[
            torch.from_numpy(np.flatnonzero(number % 2 == 1))
        ]
        calibrations |= {
            "STS": fit_sts(training),
            "affine": fit_affine(training),
            "affine + offset": fit_affine_offset(training),
        }
    return Setting(trace, Recorded.of(trace, options.head), acceptance == GREEDY, among, calibrations)


def sections(s: Setting, machines: Sequence[Scene], options: Options, progress: Progress | None) -> list[Section]:
    """Every machine under every load."""
    loads = options.loads()
    found = []
    for load in loads:
        moments = timeline(s.trace, load, s.among)
        for scene in machines:
            runs = study(s.recorded, moments, load.slots, scene, s.greedy, s.calibrations)
            found.append(Section(scene, load, runs))
            if progress is not None:
                progress(len(found), len(loads) * len(machines))
    return found


def rank_tables(s: Setting, machines: Sequence[Scene], steps: int) -> list[dict[str, Any]]:
    """The rules of agreement, for each mix of loads, on the machines that have graphs."""
    if not steps:
        return []
    calibrations: list[tuple[str, Calibration | None]] = [("none", None), *s.calibrations.items()]
    return [
        {
            "scene": scene.name,
            "ranks": mix,
            "calibration": name,
            "lines": compare_rules(s.trace, s.recorded, scene, loads, steps, calibration, s.among),
        }
        for scene in machines
        if scene.tiers
        for mix, loads in MIXES.items()
        for name, calibration in calibrations
    ]


def report(
    trace: Trace, cells: CostCells, options: Options, progress: Progress | None = None
) -> tuple[dict[str, Any], list[Section]]:
    """The report as plain data, and the runs behind it (for figures)."""
    machines = scenes(cells, trace.gamma + 1)
    chosen = setting(trace, options)
    found = sections(chosen, machines, options, progress)
    data = {
        "acceptance": "greedy" if chosen.greedy else "sampled",
        "head": options.head,
        "gamma": trace.gamma,
        "requests": len(trace.request_starts) if chosen.among is None else len(chosen.among),
        "held_out": options.held_out,
        "tables": [section.as_dict() for section in found],
        "ranks": rank_tables(chosen, machines, options.rank_steps),
        "note": NOTE,
    }
    return data, found


class Theta(NamedTuple):
    """Expected tokens per second of one step over its budget, and the budget that a plan takes."""

    budgets: list[int]
    tokens_per_second: list[float]
    chosen: int


def theta_curve(logits: Tensor, cost: StepCost) -> Theta:
    """Of the step of B requests with these logits [B, γ], judged by its own confidences."""
    survival = prefix_survival(logits=logits)
    requests, gamma = survival.shape
    tau = requests + torch.cat([torch.zeros(1), survival.flatten().sort(descending=True).values]).double().cumsum(0)
    row = cost.row(requests * (gamma + 1), num_reqs=requests)[requests:].double() + cost.base(requests)
    chosen = int(plan_budget(survival, cost, search="global")[0])
    return Theta(list(range(len(tau))), (tau / row * 1e9).tolist(), chosen)
