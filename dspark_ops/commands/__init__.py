"""The commands of `dspark-ops`, a module each."""

from . import check, env, replay, report
from ._app import app

__all__ = ["app", "check", "env", "replay", "report"]
