"""Search against plain enumeration and a plain loop."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from lite_nmt.config import Config, DecodeConfig, ModelConfig, StackConfig, VocabularyConfig
from lite_nmt.data.vocabulary import BOS, EOS, PAD
from lite_nmt.decode.search import search
from lite_nmt.errors import LiteNmtError
from lite_nmt.models.translation import TranslationModel

TYPES = 8  # four special tokens and four words
WORDS = range(EOS + 1, TYPES)


def tiny(mixer: str = "lsra", types: int = TYPES, seed: int = 0) -> TranslationModel:
    stack = StackConfig(layers=2, mixer=mixer, heads=2, conv_heads=2, kernels=(3, 5), ffn=16)
    model = ModelConfig(width=16, encoder=stack, decoder=stack, cross_heads=2)
    torch.manual_seed(seed)
    built = TranslationModel(Config(model, VocabularyConfig(source=types, target=types))).eval()
    with torch.no_grad():
        built.project.weight.mul_(3)  # so that choices differ clearly
    return built


def pad(sentences: list[list[int]]) -> tuple[Tensor, Tensor]:
    longest = max(map(len, sentences))
    source = torch.tensor([[*s, *[PAD] * (longest - len(s))] for s in sentences])
    return source, source != PAD


def sentences(count: int, types: int = TYPES, seed: int = 1) -> list[list[int]]:
    draw = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 9, (count,), generator=draw).tolist()
    return [[*torch.randint(EOS + 1, types, (n,), generator=draw).tolist(), EOS] for n in lengths]


@torch.no_grad()
def logprob(model: TranslationModel, source: list[int], tokens: tuple[int, ...]) -> float:
    """Teacher-forced."""
    x, keep = pad([source])
    scores = model.project(model(x, keep, torch.tensor([[BOS, *tokens]]))).log_softmax(-1)[0]
    return sum(scores[t, token].item() for t, token in enumerate([*tokens, EOS]))


def enumerate_all(model: TranslationModel, source: list[int], longest: int) -> Iterator[tuple[tuple[int, ...], float]]:
    for length in range(longest + 1):
        for tokens in itertools.product(WORDS, repeat=length):
            yield tokens, logprob(model, source, tokens)


@pytest.mark.parametrize("mixer", ["attention", "lightconv", "dynamicconv", "talk", "average", "lsra", "cnn"])
@pytest.mark.parametrize(
    ("penalty", "exponent"), [("power", 0.0), ("power", 1.0), ("gnmt", 0.6), ("power", -0.5), ("stepwise", 0.7)]
)
def test_a_wide_beam_finds_what_enumeration_finds(mixer: str, penalty: str, exponent: float) -> None:
    model, source = tiny(mixer), [5, 7, 4, EOS]
    decode = DecodeConfig(beam=30, length_penalty=exponent, penalty=penalty, max_length=2)

    def score(value: float, n: int) -> float:
        if penalty == "stepwise":
            return value + exponent * (n - 1)  # the end marker earns nothing
        return float(value / (n if penalty == "power" else (5 + n) / 6) ** exponent)

    expected = sorted(
        ((score(value, len(tokens) + 1), tokens, value) for tokens, value in enumerate_all(model, source, 2)),
        reverse=True,
    )
    found = search(model, *pad([source]), decode, nbest=30)[0]
    assert [h.tokens for h in found] == [tokens for _, tokens, _ in expected]  # all 1 + 4 + 16 of them
    assert [h.score for h in found] == pytest.approx([value for value, _, _ in expected], abs=1e-5)
    assert [h.logprob for h in found] == pytest.approx([value for _, _, value in expected], abs=1e-5)


def reference_beam(
    model: TranslationModel, source: list[int], decode: DecodeConfig, limit: int
) -> list[tuple[int, ...]]:
    """The same rule for one sentence, with lists, and without state."""
    x, keep = pad([source])
    with torch.no_grad():
        memory = model.memory(model.encode(x, keep))
    open_: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    done: list[tuple[float, tuple[int, ...]]] = []
    for position in range(limit + 1):
        candidates = []
        for total, tokens in open_:
            with torch.no_grad():
                scores = model.project(model.decode(torch.tensor([[BOS, *tokens]]), memory, keep))[0, -1]
            scores = scores.log_softmax(-1)
            for token in [EOS] if position == limit else range(EOS, len(scores)):
                candidates.append((total + scores[token].item(), (*tokens, token)))
        best = sorted(candidates, reverse=True)[: 2 * decode.beam]
        for value, tokens in best[: decode.beam]:
            if tokens[-1] == EOS:
                done.append((value / len(tokens) ** decode.length_penalty, tokens[:-1]))
        if len(done) >= decode.beam:
            break
        open_ = [c for c in best if c[1][-1] != EOS][: decode.beam]
    return [tokens for _, tokens in sorted(done, reverse=True)]


@pytest.mark.parametrize("mixer", ["lsra", "talk", "average"])
@pytest.mark.parametrize("beam", [2, 3, 5])
def test_beam_search_follows_its_rule(mixer: str, beam: int) -> None:
    model, batch = tiny(mixer, types=24, seed=beam), sentences(6, 24)
    decode = DecodeConfig(beam=beam, length_penalty=0.6)
    found = search(model, *pad(batch), decode, nbest=beam)
    for source, best in zip(batch, found, strict=True):
        expected = reference_beam(model, source, decode, 3 * (len(source) - 1) // 2 + 20)
        assert [h.tokens for h in best] == expected[:beam]
        for h in best:
            assert h.logprob == pytest.approx(logprob(model, source, h.tokens), abs=1e-4)


@pytest.mark.parametrize("mixer", ["attention", "lightconv", "dynamicconv", "talk", "average", "lsra", "cnn"])
def test_greedy_is_an_argmax_loop(mixer: str) -> None:
    model, batch = tiny(mixer, types=40), sentences(5, 40)
    found = search(model, *pad(batch), DecodeConfig(beam=1, max_length=12))
    for source, (hypothesis,) in zip(batch, found, strict=True):
        x, keep = pad([source])
        tokens: list[int] = []
        with torch.no_grad():
            while len(tokens) < 12:
                scores = model.project(model(x, keep, torch.tensor([[BOS, *tokens]])))[0, -1]
                token = int(scores[EOS:].argmax()) + EOS
                if token == EOS:
                    break
                tokens.append(token)
        assert hypothesis.tokens == tuple(tokens)
        assert hypothesis.logprob == pytest.approx(logprob(model, source, hypothesis.tokens), abs=1e-4)


@pytest.mark.parametrize("mixer", ["attention", "dynamicconv", "talk", "average", "lsra"])
@pytest.mark.parametrize("beam", [1, 4])
def test_a_result_does_not_depend_on_its_batch(mixer: str, beam: int) -> None:
    model, batch = tiny(mixer, types=40), sentences(9, 40)
    decode = DecodeConfig(beam=beam, no_repeat_ngram=3)
    together = search(model, *pad(batch), decode, nbest=beam)
    for source, best in zip(batch, together, strict=True):
        alone = search(model, *pad([source]), decode, nbest=beam)[0]
        assert [h.tokens for h in best] == [h.tokens for h in alone]
        assert [h.score for h in best] == pytest.approx([h.score for h in alone], abs=1e-5)


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_no_ngram_is_repeated(beam: int, n: int) -> None:
    model, batch = tiny(types=12), sentences(6, 12)
    free = DecodeConfig(beam=beam, min_length=20, max_length=25)

    def repeats(tokens: tuple[int, ...]) -> bool:
        grams = [tokens[i : i + n] for i in range(len(tokens) - n + 1)]
        return len(grams) > len(set(grams))

    assert any(repeats(h.tokens) for best in search(model, *pad(batch), free) for h in best)
    for best in search(model, *pad(batch), replace(free, no_repeat_ngram=n), nbest=beam):
        for h in best:
            assert not repeats(h.tokens)  # with n = 1 there are only 8 words: it ends before min_length
            assert n == 1 or len(h.tokens) >= 20


@pytest.mark.parametrize("beam", [1, 3])
def test_lengths_are_kept(beam: int) -> None:
    model, batch = tiny(types=12), sentences(6, 12)
    for low, high in ((0, 1), (3, 3), (7, 9), (1, 4)):
        decode = DecodeConfig(beam=beam, min_length=low, max_length=high)
        for best in search(model, *pad(batch), decode, nbest=beam):
            assert best
            assert all(low <= len(h.tokens) <= high for h in best)
    endless = DecodeConfig(beam=beam, min_length=60)
    assert all(len(best[0].tokens) >= 60 for best in search(model, *pad(batch), endless))


@pytest.mark.parametrize("beam", [1, 3])
def test_a_stepwise_penalty_decides_while_searching(beam: int) -> None:
    model, batch = tiny(types=12), sentences(6, 12)
    lengths = []
    for given in (-4.0, 0.0, 4.0):
        decode = DecodeConfig(beam=beam, penalty="stepwise", length_penalty=given, max_length=15)
        found = [best for (best,) in search(model, *pad(batch), decode)]
        for source, best in zip(batch, found, strict=True):
            assert best.logprob == pytest.approx(logprob(model, source, best.tokens), abs=1e-4)
            assert best.score == pytest.approx(best.logprob + given * len(best.tokens), abs=1e-4)
        lengths.append(sum(len(best.tokens) for best in found))
    assert lengths[0] < 6 * 15 == lengths[2] >= lengths[1] >= lengths[0]


def test_the_limit_follows_the_source() -> None:
    model = tiny(types=12)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("feed.norm.bias"):
                parameter.fill_(1.0)  # the decoder's output now sums to its width
        model.project.weight.zero_()
        model.project.weight[EOS] = -1.0  # so that the end marker is always the last choice
    batch = [[4, EOS], [4] * 10 + [EOS]]
    found = search(model, *pad(batch), DecodeConfig(beam=1))
    assert [len(best[0].tokens) for best in found] == [21, 35]


def test_nbest_is_sorted_and_distinct() -> None:
    model, batch = tiny(types=40), sentences(7, 40)
    for best in search(model, *pad(batch), DecodeConfig(beam=6, length_penalty=1.0), nbest=6):
        assert len(best) == 6
        assert len({h.tokens for h in best}) == 6
        assert [h.score for h in best] == sorted((h.score for h in best), reverse=True)
        assert all(token > EOS for h in best for token in h.tokens)


def test_a_beam_wider_than_the_vocabulary() -> None:
    model = tiny()
    found = search(model, *pad(sentences(3)), DecodeConfig(beam=50, max_length=1), nbest=50)
    assert [len(best) for best in found] == [5, 5, 5]  # nothing, or one of four words


def test_an_empty_batch() -> None:
    empty = torch.empty(0, 3, dtype=torch.int64)
    assert search(tiny(), empty, empty != PAD, DecodeConfig()) == []


@pytest.mark.parametrize("beam", [1, 3])
def test_refusals(beam: int) -> None:
    model, batch = tiny(), pad(sentences(2))
    with pytest.raises(LiteNmtError, match="nbest is 4"):
        search(model, *batch, DecodeConfig(beam=beam), nbest=4)
    with pytest.raises(LiteNmtError, match="min_length is 5"):
        search(model, *batch, DecodeConfig(beam=beam, min_length=5, max_length=4))
    with torch.no_grad():
        model.project.weight.fill_(math.nan)
    with pytest.raises(LiteNmtError, match="not finite"):
        search(model, *batch, DecodeConfig(beam=beam))
