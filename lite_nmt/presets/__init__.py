"""TOML presets: one for each row of the papers' tables, and our own."""
