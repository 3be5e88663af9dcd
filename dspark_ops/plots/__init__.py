"""Figures of the reports, a module each; they need matplotlib (the extra `plot`), which is imported when one is drawn."""
