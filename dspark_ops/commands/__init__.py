"""The commands of `dspark-ops`, a module each."""

from . import calibrate, check, env, replay, report
from ._app import app

__all__ = ["app", "calibrate", "check", "env", "replay", "report"]
