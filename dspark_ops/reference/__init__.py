"""The executable specification: every operator in plain torch, with the arguments of its dispatcher schema.

A function writes its outputs and returns nothing. It runs on any device, without a host synchronisation.
"""
