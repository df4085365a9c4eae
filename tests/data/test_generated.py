"""The generated corpus: what its grammar covers, and that it is the same everywhere."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

from lite_nmt.data import generated
from lite_nmt.data.generated import sentence_pairs, write_corpus
from lite_nmt.data.generated.grammar import draw_pair
from lite_nmt.data.generated.lexicon import ADJECTIVE, NOUN, VERB, VERBS
from lite_nmt.data.generated.numbers import number_words
from lite_nmt.data.generated.phrases import ACC, DAT, contract, noun_phrase
from lite_nmt.data.generated.verbs import german_verb, imperative, zu_infinitive
from lite_nmt.errors import LiteNmtError


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str]]:
    return sentence_pairs(12_000)


def test_the_first_sentences_never_change() -> None:
    assert sentence_pairs(5) == [
        ("Sophie did not go to the beach on March 30.", "Sophie ist am 30. März nicht an den Strand gegangen."),
        ("The old colleague sold the pen.", "Der alte Kollege hat den Stift verkauft."),
        ("David asked whether we will write a poem.", "David hat gefragt, ob wir ein Gedicht schreiben werden."),
        ("The old lamp costs $18.", "Die alte Lampe kostet 18 $."),
        (
            "The young boss may invite Lena tomorrow because she is not sad.",
            "Die junge Chefin darf morgen Lena einladen, weil sie nicht traurig ist.",
        ),
    ]


def test_a_seed_decides_and_a_larger_count_only_continues(pairs: list[tuple[str, str]]) -> None:
    assert sentence_pairs(100) == pairs[:100]
    assert sentence_pairs(100, seed=2) != pairs[:100]


def test_no_sentence_appears_twice_on_either_side(pairs: list[tuple[str, str]]) -> None:
    assert len({english for english, _ in pairs}) == len({german for _, german in pairs}) == len(pairs)


def test_each_sentence_has_one_translation_in_each_direction() -> None:
    rng = Random(7)
    drawn = {draw_pair(rng) for _ in range(20_000)}
    assert len({english for english, _ in drawn}) == len({german for _, german in drawn}) == len(drawn)


def test_sentences_are_cased_and_punctuated(pairs: list[tuple[str, str]]) -> None:
    for sentence in (sentence for pair in pairs for sentence in pair):
        assert re.fullmatch(r"[A-ZÄÖÜ0-9].*[.?!]", sentence), sentence
        assert not re.search(r"  | [.,?!]|[{}_|]|,,|\.\.", sentence), sentence


def test_sentences_are_short_enough_to_learn_and_long_enough_to_matter(pairs: list[tuple[str, str]]) -> None:
    lengths = [len(english.split()) for english, _ in pairs]
    assert 7.5 < sum(lengths) / len(lengths) < 11
    assert min(lengths) <= 3
    assert 18 <= max(lengths) <= 32


@pytest.mark.parametrize(
    ("english", "german"),
    [
        pytest.param(r"\bcalls\b", r"\bruft .*\ban[.?]", id="separable, split"),
        pytest.param(r"\bcalled\b", r"\bangerufen (hat|haben)\b", id="separable, joined at the end"),
        pytest.param(r"\bto turn off\b", r"\bauszumachen\b", id="separable, zu inside"),
        pytest.param(r"\bbecause\b", r", weil .* (ist|war|hat|konnte)\.$", id="verb-final"),
        pytest.param(r"\bthat\b", r", dass ", id="dass"),
        pytest.param(r"\bwhether\b", r", ob ", id="ob"),
        pytest.param(r"^If .*, ", r"^Wenn .*, (wird|kann|muss|will|darf|sollte|möchte) ", id="inverted after wenn"),
        pytest.param(r"\balthough\b", r", obwohl ", id="obwohl"),
        pytest.param(r"^The \w+ who\b", r"^Der \w+, der ", id="relative, subject"),
        pytest.param(r"\bwhom .* helped", r", (dem|der|denen) .* geholfen ", id="relative, dative"),
        pytest.param(r"\bwhose\b", r", (dessen|deren) ", id="relative, genitive"),
        pytest.param(r"\bin which\b", r", in (dem|der) ", id="relative, with a preposition"),
        pytest.param(r"^Yesterday, (he|she) ", r"^Gestern hat (er|sie) ", id="inversion"),
        pytest.param(r"^(Did|Has|Does|Is) ", r"^(Hat|Ist|Muss|Will) ", id="question"),
        pytest.param(r"\bdid not\b", r"\bkeinen ", id="kein"),
        pytest.param(r"\bnot\b", r"\bnicht\b", id="nicht"),
        pytest.param(r"^Please open ", r"^Bitte öffne ", id="imperative"),
        pytest.param(r"\bmore expensive than\b", r"\bteurer als\b", id="comparative"),
        pytest.param(r"\bwent to\b", r"\b(ist|bin|sind) .* gegangen\b", id="perfect with sein"),
        pytest.param(r"\bwill\b", r"\bwird\b", id="future"),
        pytest.param(r"\bright now\b", r"\bgerade\b", id="progressive"),
        pytest.param(r"\blikes to\b", r"\bgern\b", id="gern"),
        pytest.param(r"\bput .* on the table\b", r"\bauf den Tisch (gelegt|gestellt)\b", id="whither: accusative"),
        pytest.param(r"\blying on the table\b", r"\bliegt auf dem Tisch\b", id="where: dative"),
        pytest.param(r"\bmy \w+'s \w+", r"\b(meines|meiner) ", id="genitive"),
        pytest.param(r"\bkitchen table\b", r"Küchentisch", id="compound with n"),
        pytest.param(r"\bbirthday cake\b", r"Geburtstagskuchen", id="compound with s"),
        pytest.param(r"\bMarch \d+, \d{4}\b", r"\b\d+\. März \d{4}\b", id="date"),
        pytest.param(r"\bhalf past three\b", r"\bhalb vier\b", id="clock in words"),
        pytest.param(r"\b3:\d5 pm\b", r"\b15:\d5 Uhr\b", id="clock in digits"),
        pytest.param(r"€\d+\.\d\d\b", r"\b\d+,\d\d €", id="price"),
        pytest.param(r"\$\d,\d{3}\b", r"\b\d\.\d{3} \$", id="price with thousands"),
        pytest.param(r"\b(twenty|sixty)-seven\b", r"\bsiebenund(zwan|sech)zig\b", id="number words"),
    ],
)
def test_a_phenomenon_appears(pairs: list[tuple[str, str]], english: str, german: str) -> None:
    assert any(re.search(english, a) and re.search(german, b) for a, b in pairs)


def test_every_word_is_seen_often_enough(pairs: list[tuple[str, str]]) -> None:
    text = " ".join(german for _, german in pairs).lower()
    rare = [noun.german for noun in NOUN.values() if text.count(noun.german.lower()) < 10]
    rare += [verb.participle for verb in VERBS if verb.aspect != "s" and text.count(verb.participle.lower()) < 10]
    assert not rare


@pytest.mark.parametrize(
    ("infinitive", "forms"),
    [
        ("lesen", "lese liest liest lesen lest lesen"),
        ("anrufen", "rufe rufst ruft rufen ruft rufen"),
        ("einladen", "lade lädst lädt laden ladet laden"),
        ("öffnen", "öffne öffnest öffnet öffnen öffnet öffnen"),
        ("schließen", "schließe schließt schließt schließen schließt schließen"),
        ("waschen", "wasche wäschst wäscht waschen wascht waschen"),
        ("wissen", "weiß weißt weiß wissen wisst wissen"),
    ],
)
def test_the_present_tense(infinitive: str, forms: str) -> None:
    verb = VERB[infinitive]
    assert [german_verb(verb, "present", person).finite for person in range(6)] == forms.split()


def test_infinitives_and_imperatives() -> None:
    assert [zu_infinitive(VERB[name]) for name in ("lesen", "anrufen")] == ["zu lesen", "anzurufen"]
    named = ("lesen", "essen", "geben", "mitnehmen", "einladen", "öffnen", "reparieren", "waschen")
    said = ["lies", "iss", "gib", "nimm", "lade", "öffne", "repariere", "wasch"]
    assert [imperative(VERB[name]) for name in named] == said


def test_noun_phrases_agree() -> None:
    neighbor, key, water = NOUN["neighbor"], NOUN["key"], NOUN["water"]
    assert noun_phrase(neighbor, "the").german == ("der Nachbar", "den Nachbarn", "dem Nachbarn", "des Nachbarn")
    assert noun_phrase(NOUN["table"], "the", plural=True).german[DAT] == "den Tischen"
    assert noun_phrase(NOUN["car"], "the", plural=True).german[DAT] == "den Autos"
    assert noun_phrase(key, "our").german == (
        "unser Schlüssel",
        "unseren Schlüssel",
        "unserem Schlüssel",
        "unseres Schlüssels",
    )
    assert noun_phrase(water, "no").english == "any water"
    assert noun_phrase(NOUN["umbrella"], "no").german[ACC] == "keinen Regenschirm"
    assert noun_phrase(NOUN["umbrella"], "a").english == "an umbrella"


@pytest.mark.parametrize(
    ("determiner", "plural", "forms"),
    [
        ("the", False, "das alte Haus, das alte Haus, dem alten Haus, des alten Hauses"),
        ("a", False, "ein altes Haus, ein altes Haus, einem alten Haus, eines alten Hauses"),
        ("this", False, "dieses alte Haus, dieses alte Haus, diesem alten Haus, dieses alten Hauses"),
        ("the", True, "die alten Häuser, die alten Häuser, den alten Häusern, der alten Häuser"),
        ("", True, "alte Häuser, alte Häuser, alten Häusern, alter Häuser"),
        ("my", True, "meine alten Häuser, meine alten Häuser, meinen alten Häusern, meiner alten Häuser"),
    ],
)
def test_adjective_endings(determiner: str, plural: bool, forms: str) -> None:
    old = ADJECTIVE["old"]
    assert ", ".join(noun_phrase(NOUN["house"], determiner, plural, old).german) == forms


def test_contractions() -> None:
    assert contract("in", "dem alten Park") == "im alten Park"
    assert contract("zu", "der Schule") == "zur Schule"
    assert contract("in", "die Schule") == "in die Schule"


@pytest.mark.parametrize(
    ("number", "german"),
    [(1, "eins"), (16, "sechzehn"), (21, "einundzwanzig"), (30, "dreißig"), (77, "siebenundsiebzig")],
)
def test_number_words(number: int, german: str) -> None:
    assert number_words(number)[1] == german


def test_write_corpus_fills_three_disjoint_splits(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "here"
    assert write_corpus(folder, train=600, valid=50, test=40) == {"train": 600, "valid": 50, "test": 40}
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        f"{split}.{language}" for split in ("train", "valid", "test") for language in ("en", "de")
    )
    for language in ("en", "de"):
        texts = [(folder / f"{split}.{language}").read_bytes().decode() for split in ("train", "valid", "test")]
        lines = [line for text in texts for line in text.removesuffix("\n").split("\n")]
        assert len(set(lines)) == len(lines) == 690
        assert all(text.endswith((".\n", "?\n", "!\n")) for text in texts)
        assert not any("\r" in text for text in texts)


def test_more_training_data_leaves_the_test_side_alone(tmp_path: Path) -> None:
    write_corpus(tmp_path / "small", train=10, valid=10, test=20)
    write_corpus(tmp_path / "large", train=200, valid=10, test=20)
    assert (tmp_path / "small/test.de").read_bytes() == (tmp_path / "large/test.de").read_bytes()


@pytest.mark.parametrize("count", [0, -3])
def test_a_count_below_one_is_refused(count: int, tmp_path: Path) -> None:
    with pytest.raises(LiteNmtError, match=f"at least 1, not {count}"):
        sentence_pairs(count)
    with pytest.raises(LiteNmtError, match=f"valid split needs at least 1 sentence pair, not {count}"):
        write_corpus(tmp_path, valid=count)
    assert not list(tmp_path.iterdir())


def test_an_exhausted_grammar_is_refused_with_both_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    def tiny(rng: Random) -> tuple[str, str]:
        number = int(rng.random() * 7)
        return f"Number {number}.", f"Zahl {number}."

    monkeypatch.setattr(generated, "draw_pair", tiny)
    assert len(sentence_pairs(7)) == 7
    with pytest.raises(LiteNmtError, match="8 distinct sentence pairs were asked for, but the grammar gave only 7"):
        sentence_pairs(8)
