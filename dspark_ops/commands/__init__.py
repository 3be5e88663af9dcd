"""The commands of `dspark-ops`, a module each."""

from . import check, check_metadata, env, fit_cost, replay, sweep_plan
from ._app import app

__all__ = ["app", "check", "check_metadata", "env", "fit_cost", "replay", "sweep_plan"]
