"""The one exception whose message is meant for the person at the keyboard."""

from __future__ import annotations


class LiteNmtError(Exception):
    """Something the user can mend. The message is one plain sentence: what happened, the value, what to do."""
