"""The Android translator, compiled and run on this machine's JVM, says what the Python runtime says."""

from __future__ import annotations

import dataclasses
import io
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

from android_demo.tools.debian import run
from android_demo.tools.fetch import catalogue
from android_demo.tools.kotlin import class_path, compile_kotlin
from lite_nmt.config import DecodeConfig
from lite_nmt.data.corpus import read_lines
from lite_nmt.data.lines import clean
from lite_nmt.decode.segments import split
from lite_nmt.decode.translator import Translator

onnxruntime = pytest.importorskip("onnxruntime")

SOURCES = Path(__file__).parents[2] / "android_demo/translator/src"

NASTY = [
    *("", " ", "   ", "\u3000", "▁", "▁▁a", " a  b ", "\0", "a\0b", "\t\n", "<unk>", "<s> </s>", "<0x41>", "\ufffd"),
    *(
        "😀",
        "👨‍👩‍👧🇩🇪",
        "😀" * 200,
        "x" * 10_000,
        "ab " * 3_334,
        "字" * 500,
        "ﬁ①㌔ﷺ",
        "ｶﾞ",
        "가각",
        "é",
        "e\u0301\u0323",
    ),
    *(
        "\u200b",
        "\ufeffa",
        "\u00a0b",
        "שלום עולם",
        "مرحبا",
        "नमस्ते",
        "สวัสดี",
        "\U0010ffff",
        "\ue000",
        "a\u0300\u0301" * 50,
    ),
]
SCRIPTS = [
    *((0x20, 0x7E), (0x20, 0x7E), (0x00, 0x1F), (0x7F, 0x24F), (0x300, 0x36F), (0x370, 0x5FF), (0x600, 0x6FF)),
    *((0x900, 0xDFF), (0xE00, 0x11FF), (0x1E00, 0x2BFF), (0x2000, 0x206F), (0x3000, 0x30FF), (0x3130, 0x4DFF)),
    *((0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xE000, 0xFFFD), (0x10000, 0x1FFFF), (0x20000, 0x2FFFF), (0xE0000, 0xE01FF)),
]


@pytest.fixture(scope="module")
def classes(libraries: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled library and its tests."""
    sources = [SOURCES / "main/kotlin", SOURCES / "test/kotlin"]
    return compile_kotlin(sources, libraries, tmp_path_factory.mktemp("classes") / "t.jar")


@pytest.fixture(scope="module")
def fixtures(corpus: Path, exported: Path, exported_int8: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the Kotlin tests read: bundles, and what Python says of them."""
    folder = tmp_path_factory.mktemp("fixtures")
    with zipfile.ZipFile(exported_int8) as archive:
        archive.extractall(folder / "int8")
    lines = [line for name in ("train.de", "train.en") for line in read_lines(corpus / name)]
    write(folder / "expected.json", {"bundles": [expected(path, lines[:200]) for path in (exported, folder / "int8")]})
    write(folder / "tokens.json", {"models": [tokens(folder, kind, lines) for kind in ("bpe", "unigram")]})
    write(folder / "segments.json", segments())
    return folder


def write(path: Path, said: dict[str, Any]) -> None:
    path.write_text(json.dumps(said))


def expected(path: Path, lines: list[str]) -> dict[str, Any]:
    """Translations of one part of a line at a time: int8 scores depend on what else is in a batch.

    They depend on ONNX Runtime's release too, and where two words are as good as one another, so do the tokens.
    """
    translator = Translator.load(path, threads=1)
    cases = []
    for beam in {1, translator.config.decode.beam, 4}:
        decode: DecodeConfig = dataclasses.replace(translator.config.decode, beam=beam)
        for line in lines:
            [translation] = translator.translate_all([line], decode, batch_tokens=1)
            best = translation.candidates[0]
            ids = translator.vocabulary.target.piece_to_id(list(best.pieces))
            cases.append({"text": line, "beam": beam, "tokens": ids, "translation": best.text, "score": best.score})
    precision = json.loads((path / "manifest.json").read_text())["precision"]
    exact = precision == "fp32" or onnxruntime.__version__ == catalogue()["onnxruntime"].version
    return {"folder": str(path), "exact": exact, "cases": cases}


def tokens(folder: Path, kind: str, lines: list[str]) -> dict[str, Any]:
    """A model of this kind, and what SentencePiece itself makes of nasty texts and of nasty tokens."""
    model = io.BytesIO()
    special: dict[str, Any] = {
        "pad_id": 0,
        "unk_id": 1,
        "bos_id": 2,
        "eos_id": 3,
        "byte_fallback": True,
        "minloglevel": 2,
    }
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        model_type=kind,
        vocab_size=450,
        hard_vocab_limit=False,
        **special,
    )
    (folder / f"{kind}.spm").write_bytes(model.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    draw = random.Random(1)
    texts = [*NASTY, *(fuzzed(draw, lines) for _ in range(400))]
    encoded = [{"text": text, "ids": processor.encode(text)} for text in texts]
    size = processor.get_piece_size()
    drawn = [[draw.randrange(4, draw.choice([260, size])) for _ in range(draw.randrange(12))] for _ in range(400)]
    every = [
        *drawn,
        *([processor.piece_to_id("▁")] * 2 + ids for ids in drawn[:50]),
        *(case["ids"] for case in encoded),
    ]
    decoded = [{"ids": ids, "text": processor.decode(ids)} for ids in every]
    return {"file": f"{kind}.spm", "encoded": encoded, "decoded": decoded}


def fuzzed(draw: random.Random, lines: list[str]) -> str:
    """Words of the corpus, of nasty texts and of many scripts."""
    parts = []
    for _ in range(draw.randrange(1, 8)):
        script = draw.choice(SCRIPTS)
        drawn = "".join(chr(draw.randint(*script)) for _ in range(draw.randrange(1, 6)))
        parts += [draw.choice([drawn, drawn, draw.choice(NASTY)[:9], *draw.choice(lines).split()[:2]])]
        parts += [draw.choice(["", " ", "  "])]
    return "".join(parts)


def segments() -> dict[str, Any]:
    draw = random.Random(1)
    parts = [*("▁a", "▁b", "c", "▁", ".", "!", "?”", "。", "’", "…", "▁.", "<0xE5>", "<0xAD>", "<0x97>", "字")]
    cases = []
    for _ in range(500):
        pieces = draw.choices(parts, k=draw.randrange(1, 60))
        limit = draw.randrange(1, 30)
        cases.append({"pieces": pieces, "limit": limit, "ends": [cut.stop for cut in split(pieces, limit)]})
    texts = [chr(i) + "x" for i in (*range(0x180), 0x2027, 0x2028, 0x2029, 0x202A, 0xFFFD, 0x1F600)]
    texts += ["\ud800", "\udc00", "a\ud800b", "\udc00\ud800"]
    return {"cases": cases, "lines": [{"text": text, "clean": clean(text)} for text in texts]}


@pytest.mark.filterwarnings("ignore:lines longer than")
def test_the_library(classes: Path, libraries: list[Path], fixtures: Path) -> None:
    tests = SOURCES / "test/kotlin"
    names = [".".join(file.relative_to(tests).with_suffix("").parts) for file in tests.rglob("*Test.kt")]
    run(
        *("java", "-Xss4m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Dlitenmt.fixtures={fixtures}"),
        *("-cp", class_path([classes, *libraries]), "org.junit.runner.JUnitCore", *names),
        purpose="pass the translator's tests",
    )


def test_no_class_needs_more_than_a_phone_has(classes: Path) -> None:
    """No invokedynamic, and no class file of a later Java."""
    with zipfile.ZipFile(classes) as jar:
        for name in jar.namelist():
            if name.endswith(".class"):
                content = jar.read(name)
                assert content[6:8] == b"\0\x34", name  # Java 8
                assert b"LambdaMetafactory" not in content, name
                assert b"StringConcatFactory" not in content, name
