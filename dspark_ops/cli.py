"""Entry point of the `dspark-ops` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say which extra is missing."""
    try:
        from .commands import app
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in ("typer", "rich", "numpy"):
            raise
        sys.exit(f"error: dspark-ops needs {package}, which is not installed: pip install 'dspark_ops[cli]'")
    app()


if __name__ == "__main__":
    main()
