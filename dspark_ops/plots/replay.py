"""Figures of `dspark-ops report`: promise and outcome, the curve that a plan maximises, throughput over load."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..replay.report import Section, Theta
from ..replay.timeline import MIXED
from ._figure import new_figure, save_figure

PLANNED = "tier, lag 1"
CALIBRATED = "tier, lag 1, affine + offset"  # with held-out calibrations only
SHOWN = ("static", "best fixed", "threshold", "additive, lag 1", PLANNED, CALIBRATED, "tier, first_drop", "oracle")


def _group(budget: str, policy: str) -> str:
    if policy == "static":
        return policy
    return "best fixed" if budget.startswith("fixed") else "threshold" if budget.startswith("threshold") else budget


def draw_tau(sections: Sequence[Section], path: Path) -> None:
    """tau of each step, predicted by the plan from current confidences against actual, at the largest full load."""
    full = [s for s in sections if s.load.arrivals is None and s.load.order == MIXED]
    most = max(s.load.slots for s in full)
    chosen = [s for s in full if s.load.slots == most]
    figure = new_figure(4.2 * len(chosen), 4.2)
    for i, section in enumerate(chosen):
        run = next(r for r in section.runs if (r.policy, r.budget) == ("compact", PLANNED))
        axes = figure.add_subplot(1, len(chosen), i + 1)
        axes.scatter(run.predicted, run.actual, s=6, alpha=0.5)
        ends = [min(*run.predicted, *run.actual), max(*run.predicted, *run.actual)]
        axes.plot(ends, ends, color="grey", linewidth=1)
        axes.set(title=f"{section.scene.name}, B = {most}", xlabel="tau predicted", ylabel="tokens committed")
    save_figure(figure, path)


def draw_theta(curves: dict[str, Theta], path: Path) -> None:
    """Expected tokens per second over the budget of one step, the plan's choice marked; a curve per machine."""
    figure = new_figure(4.2 * len(curves), 3.6)
    for i, (name, theta) in enumerate(curves.items()):
        axes = figure.add_subplot(1, len(curves), i + 1)
        axes.plot(theta.budgets, theta.tokens_per_second, linewidth=1)
        axes.plot(theta.chosen, theta.tokens_per_second[theta.chosen], "o", color="black")
        axes.set(title=name, xlabel="budget (draft rows)", ylabel="expected tokens/s")
    save_figure(figure, path)


def draw_load(sections: Sequence[Section], path: Path) -> None:
    """Throughput over static against the load B, a line per budget, a plot per machine."""
    full = [s for s in sections if s.load.arrivals is None and s.load.order == MIXED]
    scenes = list(dict.fromkeys(s.scene.name for s in full))
    figure = new_figure(4.2 * len(scenes), 4.0)
    for i, name in enumerate(scenes):
        axes = figure.add_subplot(1, len(scenes), i + 1)
        own = sorted((s for s in full if s.scene.name == name), key=lambda s: s.load.slots)
        for shown in SHOWN:
            points = [
                (s.load.slots, r.tokens_per_second / s.runs[0].tokens_per_second)
                for s in own
                for r in s.runs
                if r.policy != "cap-accept" and _group(r.budget, r.policy) == shown
            ]
            if points:
                axes.plot(*zip(*points, strict=True), marker="o", markersize=3, label=shown)
        axes.set(title=name, xlabel="B", ylabel="tokens/s over static", xscale="log")
        axes.minorticks_off()
        axes.set_xticks([s.load.slots for s in own], [str(s.load.slots) for s in own])
    axes.legend(fontsize="small")
    save_figure(figure, path)
