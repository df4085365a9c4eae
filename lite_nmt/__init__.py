"""lite-nmt: train, compress and ship neural machine translation under a compute budget."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lite_nmt.config import Config, DecodeConfig, load_preset
    from lite_nmt.decode.translator import Translator
    from lite_nmt.errors import LiteNmtError
    from lite_nmt.export.model import export_model
    from lite_nmt.profiling.traced import profile
    from lite_nmt.train.run import train_model

__version__ = "0.1.0"
__all__ = [
    "Config",
    "DecodeConfig",
    "LiteNmtError",
    "Translator",
    "__version__",
    "export_model",
    "load_preset",
    "profile",
    "train_model",
]

_PLACES = {
    "Config": "config",
    "DecodeConfig": "config",
    "LiteNmtError": "errors",
    "Translator": "decode.translator",
    "export_model": "export.model",
    "load_preset": "config",
    "profile": "profiling.traced",
    "train_model": "train.run",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for, so that running a bundle never imports torch."""
    if name in _PLACES:
        return getattr(import_module(f"lite_nmt.{_PLACES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
