"""The commands of `dspark-ops`, a module each."""

from . import check, check_metadata, env, replay
from ._app import app

__all__ = ["app", "check", "check_metadata", "env", "replay"]
