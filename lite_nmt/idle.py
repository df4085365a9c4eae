"""Settings that do nothing beside others: given by hand, they are refused.

A configuration holds all settings, of which a task or a mixer reads some. What a preset or a checkpoint holds in vain
does no harm; but a person who sets what nothing reads believes in an effect that is not there.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from lite_nmt.config import ATTENTIONS, CONVOLUTIONS, MIXERS, Config
from lite_nmt.errors import LiteNmtError

ATTENDING, CONVOLVING = (*ATTENTIONS, "lsra"), (*CONVOLUTIONS, "lsra")

# Settings of one side that not all mixers read, and those that do.
READ_BY = {
    **dict.fromkeys(("heads", "kept_heads", "persistent"), ATTENDING),
    **dict.fromkeys(("span", "ramp"), ("adaptive-span",)),
    **dict.fromkeys(("kernels", "glu"), (*CONVOLVING, "cnn")),
    **dict.fromkeys(("conv_heads", "conv_widths", "weight_dropout"), CONVOLVING),
    **dict.fromkeys(("weight_norm", "renormalize"), ("lightconv", "dynamicconv", "lsra")),
    "windows": ("attention", "lsra"),
    "conv": ("lsra",),
}


def _but(readers: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(mixer for mixer in MIXERS if mixer not in readers)


LM: dict[str, tuple[Any, ...]] = {"task": ("lm",)}
UNKERNELED = _but((*CONVOLVING, "adaptive-span"))

# Settings that must all have one of some values, and the settings and tables that nothing reads then.
IDLE: tuple[tuple[Mapping[str, tuple[Any, ...]], tuple[str, ...]], ...] = (
    ({"task": ("translate", "summarize")}, ("model.cutoff_factor", "train.block", "train.span_loss")),
    (LM, ("model.encoder", "model.cross_heads", "model.kept_cross_heads", "decode", "train.valid_bleu")),
    (LM, ("vocabulary.source", "vocabulary.coverage", "vocabulary.max_length")),
    ({"vocabulary.joint": (True,)}, ("vocabulary.source",)),
    ({"model.cutoffs": ([],)}, ("model.cutoff_factor",)),
    *(
        ({f"model.{side}.mixer": _but(readers)}, (f"model.{side}.{name}",))
        for side in ("encoder", "decoder")
        for name, readers in READ_BY.items()
    ),
    *(
        ({f"model.{side}.conv": ("talk",)}, (f"model.{side}.weight_norm", f"model.{side}.renormalize"))
        for side in ("encoder", "decoder")
    ),
    *(  # these norms look at one tap alone
        ({f"model.{side}.weight_norm": ("none", "sigmoid", "tanh")}, (f"model.{side}.renormalize",))
        for side in ("encoder", "decoder")
    ),
    ({**LM, "model.decoder.mixer": _but(ATTENDING)}, ("model.attention_dropout",)),
    ({**LM, "model.decoder.ffn": (0,)}, ("model.activation", "model.ffn_dropout")),
    ({"model.encoder.ffn": (0,), "model.decoder.ffn": (0,)}, ("model.activation", "model.ffn_dropout")),
    ({**LM, "model.decoder.mixer": UNKERNELED}, ("train.kernels",)),
    ({"model.encoder.mixer": UNKERNELED, "model.decoder.mixer": UNKERNELED}, ("train.kernels",)),
    ({"train.optimizer": ("adam",)}, ("train.momentum",)),
    ({"train.optimizer": ("sgd",)}, ("train.betas",)),
    ({"train.schedule": ("inverse_sqrt",)}, ("train.min_lr",)),
    ({"train.warmup": (0, 1)}, ("train.warmup_lr",)),
    ({"train.distill_weight": (0,)}, ("train.distill_temperature",)),
    ({"train.distill_weight": (1,)}, ("train.label_smoothing",)),
    ({"train.stop_on": ("none",)}, ("train.patience",)),
    ({"train.finish": ("best", "last")}, ("train.average",)),
)


def idle(config: Config, *asked: Mapping[str, Any], before: Config | None = None) -> dict[str, str]:
    """Settings that were asked for in vain, by their full names, each with a sentence.

    Args:
        config: all settings, those asked for among them.
        asked: tables as they stand in TOML, whose keys are known to be right, each laid over the ones before; it may
            well make idle what these ask for.
        before: what has a value already, which is then not asked for: the defaults, or a run that is resumed.
    """
    now, was = config.to_dict(), (before or Config()).to_dict()
    found = {}
    for i, table in enumerate(asked):
        later = {name for above in asked[i + 1 :] for name in _names(above)}
        for name in _names(table):
            value = _value(now, name)
            # Nought, false and none ask for nothing, which is what there is.
            causes, why = _why(name, now) if value and value != _value(was, name) else ((), "")
            if why and later.isdisjoint(causes):
                found[name] = f"{name} is {json.dumps(value)}, which {why}; leave it out."
    return found


def refuse_idle(
    config: Config, *asked: Mapping[str, Any], file: Mapping[str, Any] | None = None, before: Config | None = None
) -> None:
    """Refuse what :func:`idle` finds; of what a file holds, which may serve several models, only tell.

    Raises:
        LiteNmtError: the first of its sentences.

    Warns:
        UserWarning: for each setting of the file that does nothing.
    """
    given = {name for table in asked for name in _names(table)}
    for name, sentence in idle(config, file or {}, *asked, before=before).items():
        if name in given:
            raise LiteNmtError(sentence)
        warnings.warn(sentence, stacklevel=2)


COUNTED = ("task", "model", "vocabulary")


def refuse_uncounted(*asked: Mapping[str, Any]) -> None:
    """Refuse what changes no cost.

    Raises:
        LiteNmtError: there is such a setting.
    """
    for name in (name for table in asked for name in _names(table)):
        if name.partition(".")[0] not in COUNTED:
            raise LiteNmtError(f"{name} changes nothing that is counted; leave it out.")


def _why(name: str, now: Mapping[str, Any]) -> tuple[Collection[str], str]:
    """The settings beside which nothing reads this one, in words too; none where something does."""
    if name.endswith(".spans"):
        return (), "training finds out by itself"
    if name == "train.average" and now["train"]["average"] > now["train"]["keep"]:
        return ("train.keep",), f"needs train.keep of as much, not {now['train']['keep']}"
    same = now["vocabulary"]["source"] == now["vocabulary"]["target"]
    if name == "vocabulary.source" and same and now["task"] != "lm":
        return (), ""  # the joint one's size, said of both sides
    for conditions, names in IDLE:
        if any(f"{name}.".startswith(f"{unread}.") for unread in names):
            found = {cause: _value(now, cause) for cause in conditions}
            if all(found[cause] in values for cause, values in conditions.items()):
                causes = " and ".join(f"{cause} is {json.dumps(value)}" for cause, value in found.items())
                return found, f"does nothing where {causes}"
    return (), ""


def _names(table: Mapping[str, Any], where: str = "") -> Iterator[str]:
    """Full names of all settings in a table."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _names(value, f"{where}{key}.")
        else:
            yield where + key


def _value(table: Any, name: str) -> Any:
    for key in name.split("."):
        table = table[key]
    return table
