"""Configuration is data: frozen dataclasses, read from TOML, checked by name before anything is loaded."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import json
import math
import tomllib
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from lite_nmt.errors import LiteNmtError

TASKS = ("translate", "lm", "summarize")
MIXERS = ("attention", "lightconv", "dynamicconv", "talk", "average", "cnn", "lsra", "adaptive-span")
ATTENTIONS = ("attention", "adaptive-span")
CONVOLUTIONS = ("lightconv", "dynamicconv", "talk")
WEIGHT_NORMS = ("softmax", "none", "sigmoid", "tanh", "l1", "l2")


def _number(default: float, low: float = 0.0, high: float = math.inf) -> Any:
    return field(default=default, metadata={"range": (low, high)})


def _choice(default: str, *choices: str) -> Any:
    return field(default=default, metadata={"choices": choices})


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _check_values(settings: Any, prefix: str = "") -> None:
    """Refuse a wrong type, a number out of its range, or a word that is none of the choices; settings within settings
    too. Lists become tuples, and whole numbers floats where such are meant, as in a file."""
    for f in dataclasses.fields(settings):
        hint, name, value = _hints(typing.cast(Any, type(settings)))[f.name], prefix + f.name, getattr(settings, f.name)
        if dataclasses.is_dataclass(hint):
            if not isinstance(value, typing.cast(type, hint)):
                raise LiteNmtError(f"{name} is {value!r}; it must be a {typing.cast(type, hint).__name__}.")
            _check_values(value, f"{name}.")
            continue
        value = _convert(hint, value, name)
        object.__setattr__(settings, f.name, value)
        for i, each in enumerate(value if isinstance(value, tuple) else ()):
            _check_limit(each, f"{name}[{i}]", f.metadata)
        if not isinstance(value, tuple):
            _check_limit(value, name, f.metadata)


def _check_limit(value: Any, name: str, limits: Mapping[str, Any]) -> None:
    if "range" in limits:
        low, high = limits["range"]
        if not low <= value <= high:
            reach = f"at least {low:g}" if high == math.inf else f"between {low:g} and {high:g}"
            raise LiteNmtError(f"{name} is {value!r}; it must be {reach}.")
    if "choices" in limits and value not in limits["choices"]:
        raise LiteNmtError(f"{name} is {value!r}; it must be one of {', '.join(limits['choices'])}.")


def _convert(hint: Any, value: Any, name: str) -> Any:
    if typing.get_origin(hint) is tuple:
        item = typing.get_args(hint)[0]
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise LiteNmtError(f"{name} is {value!r}; it must be a list of numbers.")
        return tuple(_convert(item, v, f"{name}[{i}]") for i, v in enumerate(value))
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value) if abs(value) < 1e300 else math.copysign(math.inf, value)
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        kinds = {int: "a whole number", float: "a number", bool: "true or false", str: "a string"}
        raise LiteNmtError(f"{name} is {value!r}; it must be {kinds[hint]}.")
    return value


@dataclass(frozen=True)
class StackConfig:
    """One side of the model: how many layers, and what moves information across time in them.

    A schedule (a setting with several values) names one size for each layer, from the first to the last; a shorter
    one repeats its last value, a longer one is cut, so that depth can be changed without rewriting it. ``kept_heads``,
    ``conv_widths`` and ``ffn_widths`` are what structured pruning leaves, ``spans`` what training leaves of ``span``;
    they are empty before.
    """

    layers: int = _number(6, 1, 1000)
    mixer: str = _choice("lsra", *MIXERS)
    heads: int = _number(4, 1, 65_536)  # attention heads that the width is divided into
    kept_heads: tuple[int, ...] = field(default=(), metadata={"range": (1, 65_536)})  # of them; empty: all
    conv: str = _choice("lightconv", *CONVOLUTIONS)  # the convolution inside LSRA
    conv_heads: int = _number(4, 0)  # weight sharing H; 0 gives each channel its own kernel (H = C)
    conv_widths: tuple[int, ...] = field(default=(), metadata={"range": (1, 65_536)})  # channels inside; empty: C
    kernels: tuple[int, ...] = field(default=(3, 7, 15, 31, 31, 31), metadata={"range": (1, 100_000)})
    windows: tuple[int, ...] = field(default=(), metadata={"range": (1, 100_000)})  # attention; empty: unlimited
    span: int = _number(1024, 1, 100_000)  # S: most steps that a head of adaptive span may see, its own among them
    ramp: int = _number(32, 1, 100_000)  # over so many steps a head's mask falls from 1 to 0
    spans: tuple[int, ...] = field(default=(), metadata={"range": (1, 100_000)})  # what layers learned; empty: span
    persistent: int = _number(0, 0, 1_000_000)  # N: learned keys and values of each attention head, beside the text's
    glu: bool = False  # gated linear unit in the convolution's input projection
    weight_norm: str = _choice("softmax", *WEIGHT_NORMS)  # Pay Less Attention, Table 6
    weight_dropout: float = _number(0.0, 0, 0.99)  # DropConnect on the normalised taps
    renormalize: bool = False  # leave taps that fall outside the sentence out of the softmax
    ffn: int = _number(256, 0, 1_000_000)  # 0: none, as in all-attention
    ffn_widths: tuple[int, ...] = field(default=(), metadata={"range": (1, 1_000_000)})  # empty: ffn

    def kernel(self, layer: int) -> int:
        """Taps of one layer's convolution."""
        return at(self.kernels, layer)

    def window(self, layer: int) -> int | None:
        """Attention window of one layer, or None where it sees everything."""
        return at(self.windows, layer) if self.windows else None

    def span_of(self, layer: int) -> int:
        """Steps that one layer's widest head of adaptive span sees: what it has learned to, or may learn to."""
        return at(self.spans or (self.span,), layer)

    def heads_of(self, layer: int) -> int:
        """Attention heads of one layer."""
        return at(self.kept_heads or (self.heads,), layer)

    def conv_width(self, layer: int, width: int) -> int:
        """Channels inside one layer's convolution, which has ``width`` outside."""
        return at(self.conv_widths or (width,), layer)

    def ffn_width(self, layer: int) -> int:
        """Hidden width of one layer's feed-forward network."""
        return at(self.ffn_widths or (self.ffn,), layer)


def at(schedule: Sequence[int], layer: int) -> int:
    """What a schedule says of one layer, counted from 0."""
    return schedule[min(layer, len(schedule) - 1)]


@dataclass(frozen=True)
class ModelConfig:
    """An encoder-decoder, or a decoder alone, which is a language model. Widths are channels; rates are
    probabilities."""

    width: int = _number(160, 2, 65_536)
    encoder: StackConfig = StackConfig()
    decoder: StackConfig = StackConfig()
    cross_heads: int = _number(4, 1)
    kept_cross_heads: tuple[int, ...] = field(default=(), metadata={"range": (1, 65_536)})  # a schedule; empty: all
    activation: str = _choice("relu", "relu", "swish")
    norm: str = _choice("post", "post", "pre")
    dropout: float = _number(0.1, 0, 0.99)
    attention_dropout: float = _number(0.0, 0, 0.99)
    ffn_dropout: float = _number(0.0, 0, 0.99)
    tie: str = _choice("all", "all", "output", "none")  # which of source, target and output embeddings are one
    # A language model's types, by rank, where narrower embeddings begin; empty: all as wide as the model.
    cutoffs: tuple[int, ...] = field(default=(), metadata={"range": (1, 1_000_000)})
    cutoff_factor: int = _number(4, 1, 65_536)  # how much narrower each band is than the one before

    def cross_heads_of(self, layer: int) -> int:
        """Heads of one decoder layer's attention to the source."""
        return at(self.kept_cross_heads or (self.cross_heads,), layer)

    @property
    def carries(self) -> bool:
        """Whether, as a language model, it carries a cache from one block of a text to the next."""
        return self.decoder.mixer == "adaptive-span"


@dataclass(frozen=True)
class VocabularyConfig:
    """SentencePiece. A joint vocabulary serves both sides; sizes are upper limits on a small corpus. ``word`` takes the
    words of a text that is tokenised already, by frequency, and is for language models."""

    kind: str = _choice("bpe", "bpe", "unigram", "word")
    joint: bool = True
    source: int = _number(8000, 8, 1_000_000)
    target: int = _number(8000, 8, 1_000_000)
    coverage: float = _number(0.9995, 0.9, 1.0)  # share of characters kept; the rest is spelled in bytes
    # Tokens a side; longer training pairs are left out and counted, but of a text to be summarised the rest is cut off.
    # A trained model holds the longest source it saw.
    max_length: int = _number(256, 1, 100_000)


@dataclass(frozen=True)
class TrainConfig:
    """The recipe. ``batch_tokens`` limits a batch to so many tokens on its longer side, padding included; an update
    sees ``accumulate`` batches for each process. A language model's batch is ``batch_tokens`` / ``block`` texts side by
    side."""

    steps: int = _number(50_000, 1)
    batch_tokens: int = _number(4096, 1)
    accumulate: int = _number(1, 1)
    block: int = _number(256, 1, 1_000_000)  # tokens that a language model reads at once
    optimizer: str = _choice("adam", "adam", "sgd")  # AdamW, or stochastic gradients with Nesterov's momentum
    momentum: float = _number(0.99, 0, 0.9999999)  # of sgd
    lr: float = _number(5e-4, 0, 100)
    schedule: str = _choice("inverse_sqrt", "inverse_sqrt", "cosine")
    warmup: int = _number(4000, 0)
    warmup_lr: float = _number(1e-7, 0, 100)
    min_lr: float = _number(1e-7, 0, 100)  # where cosine ends
    betas: tuple[float, ...] = field(default=(0.9, 0.98), metadata={"range": (0, 0.9999999)})
    weight_decay: float = _number(1e-4, 0, 1)
    clip: float = _number(0.0, 0)  # largest gradient norm; 0 leaves it alone
    label_smoothing: float = _number(0.1, 0, 0.99)
    span_loss: float = _number(0.0, 0, 1)  # what each step of adaptive span costs, in nats a token
    distill_weight: float = _number(0.0, 0, 1)  # share of the teacher in the loss; 0: ordinary training
    distill_temperature: float = _number(1.0, 0.01, 100)  # both distributions are softened by it
    precision: str = _choice("fp32", "fp32", "bf16", "fp16")
    compile: bool = False
    kernels: str = _choice("auto", "auto", "reference", "triton")  # of convolutions and spans
    seed: int = _number(1, 0, 2**31 - 1)
    threads: int = _number(0, 0, 1024)  # CPU threads; 0 leaves PyTorch's choice
    log_every: int = _number(50, 1)
    valid_every: int = _number(1000, 1)
    valid_bleu: bool = True  # score the validation side, greedily, at each validation: BLEU, or ROUGE of summaries
    save_every: int = _number(1000, 1)
    keep: int = _number(10, 1)  # checkpoints kept on disk, beside the best one
    average: int = _number(10, 0)  # last checkpoints averaged at the end; 0 or 1: none
    finish: str = _choice("average", "average", "best", "last")  # which weights the run ends with
    stop_on: str = _choice("none", "none", "bleu", "loss")
    patience: int = _number(10, 1)  # validations without a better value before the run stops


@dataclass(frozen=True)
class DecodeConfig:
    """Beam search. Lengths are in tokens, the end marker left out."""

    beam: int = _number(4, 1, 1000)
    length_penalty: float = _number(0.6, -10, 10)
    # Divide by lp(n) = n^a, or by ((5 + n) / 6)^a; or add a to each token while searching.
    penalty: str = _choice("power", "power", "gnmt", "stepwise")
    min_length: int = _number(0, 0)
    max_length: int = _number(0, 0)  # 0: 1.5 times the source plus 20
    no_repeat_ngram: int = _number(0, 0)

    def __post_init__(self) -> None:
        _check_values(self, "decode.")
        if 0 < self.max_length < self.min_length:
            raise LiteNmtError(
                f"decode.min_length is {self.min_length}, more than decode.max_length = {self.max_length}."
            )


@dataclass(frozen=True)
class Config:
    """Everything that decides a run."""

    model: ModelConfig = ModelConfig()
    vocabulary: VocabularyConfig = VocabularyConfig()
    train: TrainConfig = TrainConfig()
    decode: DecodeConfig = DecodeConfig()
    description: str = ""
    task: str = _choice("translate", *TASKS)

    def __post_init__(self) -> None:
        _check_values(self)
        _check_model(self.model, self.vocabulary, self.task)
        _check_task(self)
        if len(self.train.betas) != 2:
            raise LiteNmtError(f"train.betas is {list(self.train.betas)}; Adam takes two numbers.")
        if self.train.stop_on == "bleu" and not self.train.valid_bleu:
            raise LiteNmtError('train.stop_on is "bleu", which needs train.valid_bleu = true.')

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return typing.cast(dict[str, Any], json.loads(json.dumps(dataclasses.asdict(self))))


def _check_task(config: Config) -> None:
    model, train, kind = config.model, config.train, config.vocabulary.kind
    if config.task == "summarize":
        if not config.decode.max_length:
            raise LiteNmtError('decode.max_length is 0; task = "summarize" needs to know how long a summary may be.')
        if train.stop_on == "bleu":
            raise LiteNmtError('train.stop_on is "bleu", which summaries do not have; use "loss".')
    if config.task == "lm":
        if kind != "word":
            raise LiteNmtError(f'vocabulary.kind is "{kind}"; task = "lm" needs "word".')
        if train.stop_on == "bleu" or train.distill_weight:
            raise LiteNmtError('task = "lm" has no BLEU and no teacher; leave out train.stop_on and distill_weight.')
        if train.compile and model.decoder.mixer == "adaptive-span":
            raise LiteNmtError("train.compile is true; adaptive spans change what is computed after each update.")
        if train.span_loss and model.decoder.mixer != "adaptive-span":
            raise LiteNmtError(
                f'train.span_loss is {train.span_loss:g}; the mixer "{model.decoder.mixer}" learns no span.'
            )
        if model.cutoffs != tuple(sorted(set(model.cutoffs))):
            raise LiteNmtError(f"model.cutoffs is {list(model.cutoffs)}; each must be larger than the one before.")
        if model.cutoffs and model.cutoffs[-1] >= config.vocabulary.target:
            raise LiteNmtError(
                f"model.cutoffs ends with {model.cutoffs[-1]}; the vocabulary has {config.vocabulary.target} types; "
                "leave some of model.cutoffs out, or all: []."
            )
        if model.cutoff_factor ** len(model.cutoffs) > model.width:
            raise LiteNmtError(f"model.cutoff_factor = {model.cutoff_factor} leaves the last band no channel.")
        return
    for name, there in (("model.cutoffs", model.cutoffs), ('vocabulary.kind = "word"', kind == "word")):
        if there:
            raise LiteNmtError(f'{name} is for language models; leave it out, or set task = "lm".')
    if "adaptive-span" in (model.encoder.mixer, model.decoder.mixer):
        raise LiteNmtError('the mixer "adaptive-span" is for language models; set task = "lm".')


def _check_model(model: ModelConfig, vocabulary: VocabularyConfig, task: str) -> None:
    width = model.width
    if width % 2:
        raise LiteNmtError(f"model.width is {width}; sinusoidal positions need an even number.")
    if task != "lm" and width % model.cross_heads:
        raise LiteNmtError(f"model.width is {width}, which model.cross_heads = {model.cross_heads} does not divide.")
    _check_kept("model.kept_cross_heads", model.kept_cross_heads, "model.cross_heads", model.cross_heads)
    for side in ("decoder",) if task == "lm" else ("encoder", "decoder"):
        stack: StackConfig = getattr(model, side)
        mixed = width // 2 if stack.mixer == "lsra" else width
        share = "half of model.width" if stack.mixer == "lsra" else "model.width"
        if stack.mixer in (*ATTENTIONS, "lsra") and mixed % stack.heads:
            raise LiteNmtError(f"{share} is {mixed}, which model.{side}.heads = {stack.heads} does not divide.")
        if stack.mixer in (*CONVOLUTIONS, "lsra") and stack.conv_heads and mixed % stack.conv_heads:
            raise LiteNmtError(
                f"{share} is {mixed}, which model.{side}.conv_heads = {stack.conv_heads} does not divide."
            )
        if uneven := [n for n in stack.conv_widths if n % (stack.conv_heads or 1)]:
            raise LiteNmtError(
                f"model.{side}.conv_widths holds {uneven[0]}, which model.{side}.conv_heads = {stack.conv_heads} does "
                "not divide."
            )
        _check_kept(f"model.{side}.kept_heads", stack.kept_heads, f"model.{side}.heads", stack.heads)
        if stack.persistent and stack.mixer not in (*ATTENTIONS, "lsra"):
            raise LiteNmtError(f'model.{side}.persistent is {stack.persistent}; the mixer "{stack.mixer}" has no keys.')
        if stack.mixer == "average" and not stack.ffn:
            raise LiteNmtError(f'model.{side}.ffn is 0; the mixer "average" needs one of at least 1.')
        if not stack.kernels:
            raise LiteNmtError(f"model.{side}.kernels is empty; give at least one size.")
    if task == "lm" and not vocabulary.joint:
        raise LiteNmtError('vocabulary.joint is false; task = "lm" has one side alone, leave it out.')
    if model.tie == "all" and not vocabulary.joint:
        raise LiteNmtError('model.tie is "all", which needs vocabulary.joint = true; use "output" or "none".')


def _check_kept(name: str, kept: Sequence[int], whole: str, heads: int) -> None:
    if kept and max(kept) > heads:
        raise LiteNmtError(f"{name} holds {max(kept)}, more than {whole} = {heads}.")


T = TypeVar("T")


def from_dict(kind: type[T], data: Mapping[str, Any], where: str = "") -> T:
    """Build a config dataclass from plain data.

    Raises:
        LiteNmtError: an unknown key (the nearest is suggested), by name; and what the settings' own checks refuse.
    """
    if not isinstance(data, Mapping):
        raise LiteNmtError(f"{where or 'the configuration'} is {data!r}; it must be a table of keys and values.")
    fields = {f.name: f for f in dataclasses.fields(typing.cast(Any, kind))}
    values: dict[str, Any] = {}
    for key, value in data.items():
        name = f"{where}.{key}" if where else key
        if key not in fields:
            raise LiteNmtError(f"unknown setting {name}{_suggest(key, list(fields))}.")
        hint = _hints(typing.cast(Any, kind))[key]
        values[key] = from_dict(typing.cast(Any, hint), value, name) if dataclasses.is_dataclass(hint) else value
    return kind(**values)


def _suggest(word: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.4)
    return f"; the nearest is {near[0]}" if near else f"; known are {', '.join(known)}"


def load_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file as plain data."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LiteNmtError(f"cannot read {path}: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise LiteNmtError(f"{path} is not valid TOML: {error}.") from error


def merge(base: Mapping[str, Any], *overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Lay tables over one another, the last one on top."""
    result = dict(base)
    for override in overrides:
        for key, value in override.items():
            below = result.get(key)
            nested = isinstance(below, Mapping) and isinstance(value, Mapping)
            result[key] = merge(below, value) if nested else value  # type: ignore[arg-type]  # nested says so
    return result


def parse_setting(text: str) -> dict[str, Any]:
    """Turn ``model.encoder.layers=3`` into a nested table; the value is TOML, or a bare string."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise LiteNmtError(f"--set {text!r} is not of the form key=value.")
    try:
        parsed: Any = tomllib.loads(f"v = {value}")["v"]
    except (ValueError, RecursionError):
        parsed = value.strip()
    for part in reversed(key.strip().split(".")):
        parsed = {part: parsed}
    return typing.cast(dict[str, Any], parsed)


def preset_names() -> list[str]:
    """Names of the presets that come with the package."""
    files = resources.files("lite_nmt.presets").iterdir()
    return sorted(f.name.removesuffix(".toml") for f in files if f.name.endswith(".toml"))


def preset_table(name: str) -> dict[str, Any]:
    """A preset as plain data, ready to be overridden."""
    names = preset_names()
    if name not in names:
        raise LiteNmtError(f"there is no preset {name}{_suggest(name, names)}. See `lite-nmt presets`.")
    text = resources.files("lite_nmt.presets").joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def load_preset(name: str, *overrides: Mapping[str, Any]) -> Config:
    """A preset as a :class:`Config`, with tables laid over it."""
    return from_dict(Config, merge(preset_table(name), *overrides))
