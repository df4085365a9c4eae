"""Graphs for the device, the bundle that holds them, and what runs it."""
