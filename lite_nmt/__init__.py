"""lite-nmt: train, compress and ship neural machine translation under a compute budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lite_nmt.decode.translator import Translator
    from lite_nmt.profiling.traced import profile

__version__ = "0.1.0"
__all__ = ["Translator", "__version__", "profile"]


def __getattr__(name: str) -> Any:
    """Import torch only for those who use it."""
    if name == "Translator":
        from lite_nmt.decode.translator import Translator

        return Translator
    if name == "profile":
        from lite_nmt.profiling.traced import profile

        return profile
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
