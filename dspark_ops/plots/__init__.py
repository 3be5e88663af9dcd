"""Figures of the reports, a module each; they need matplotlib (the extra `plot`), imported when one is drawn."""
