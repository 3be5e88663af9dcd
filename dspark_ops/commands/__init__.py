"""The commands of `dspark-ops`, a module each."""

from . import calibrate, check, check_metadata, env, fit_cost, replay, report, sweep_plan
from ._app import app

__all__ = ["app", "calibrate", "check", "check_metadata", "env", "fit_cost", "replay", "report", "sweep_plan"]
