"""The words as objects: nouns, places, adjectives and verbs, read from the tables."""

from __future__ import annotations

from dataclasses import dataclass

from lite_nmt.data.generated import tables


@dataclass(frozen=True)
class Noun:
    """A noun of both languages; `plural` is empty for water, and for mothers, of whom one has one."""

    kind: str
    english: str
    english_plural: str
    gender: str
    german: str
    plural: str
    genitive: str

    @property
    def oblique(self) -> str:
        """Accusative and dative singular: a weak masculine (den Nachbarn) takes its genitive form."""
        weak = self.gender == "m" and not self.genitive.endswith("s")
        return self.genitive if weak else self.german


@dataclass(frozen=True)
class Place:
    """A place, how one is at it (am Strand) and how one gets there (an den Strand, zum Bahnhof)."""

    noun: Noun
    english_at: str
    german_at: str
    german_to: str


@dataclass(frozen=True)
class Adjective:
    """An adjective; `stem` takes the endings, the comparatives are empty where nobody compares."""

    english: str
    english_more: str
    german: str
    stem: str
    german_more: str


@dataclass(frozen=True)
class Verb:
    """A verb: English base, past and -ing form; German infinitive, er-form, participle, auxiliary.

    aspect: a activity; m activity never "in progress"; p past and future only; s state, present only.
    frame: what the verb takes, see `predicates.py`.
    """

    english: str
    past: str
    ing: str
    prefix: str
    german: str
    third: str
    participle: str
    auxiliary: str
    aspect: str
    frame: tuple[str, ...]


def _rows(table: str) -> list[list[str]]:
    return [
        ["" if cell == "-" else cell.replace("_", " ") for cell in line.split()] for line in table.strip().splitlines()
    ]


def _noun(kind: str, row: list[str]) -> Noun:
    return Noun(kind, *row[:6])


def _verb(row: list[str]) -> Verb:
    prefix, _, german = row[3].rpartition("|")
    return Verb(row[0], row[1], row[2], prefix, german, row[4], row[5], row[6], row[7], tuple(row[8:]))


PLACES: dict[str, tuple[Place, ...]] = {
    kind: tuple(Place(_noun(kind, row), *row[6:]) for row in _rows(table)) for kind, table in tables.PLACES.items()
}
_KINDS: dict[str, tuple[Noun, ...]] = {
    **{kind: tuple(_noun(kind, row) for row in _rows(table)) for kind, table in tables.NOUNS.items()},
    **{kind: tuple(place.noun for place in places) for kind, places in PLACES.items()},
}
#: Every simple noun by its English singular.
NOUN: dict[str, Noun] = {noun.english: noun for nouns in _KINDS.values() for noun in nouns}


def _taken(names: str) -> tuple[Noun, ...]:
    return tuple(n for name in names.split() for n in (_KINDS[name] if name in _KINDS else (NOUN[name],)))


#: Nouns by kind, and by what a verb takes.
NOUNS: dict[str, tuple[Noun, ...]] = {**_KINDS, **{group: _taken(names) for group, names in tables.TAKEN.items()}}


def _compound(first: str, german_first: str, head: Noun) -> Noun:
    joined = [german_first + part[0].lower() + part[1:] for part in (head.german, head.plural or " ", head.genitive)]
    plural = joined[1] if head.plural else ""
    english_plural = f"{first} {head.english_plural}" if head.plural else ""
    return Noun(head.kind, f"{first} {head.english}", english_plural, head.gender, joined[0], plural, joined[2])


#: The compounds with a given head, by the head's English name; gender and inflection are the head's.
COMPOUNDS: dict[str, tuple[Noun, ...]] = {
    head: tuple(_compound(row[0], row[1], NOUN[head]) for row in _rows(tables.COMPOUNDS) if head in row[2:])
    for head in NOUN
}

#: Every adjective by its English name.
ADJECTIVE: dict[str, Adjective] = {
    row[0]: Adjective(row[0], row[1], row[2], row[3] or row[2], row[4]) for row in _rows(tables.ADJECTIVES)
}
#: The adjectives that suit a kind of noun.
ADJECTIVES: dict[str, tuple[Adjective, ...]] = {
    kind: tuple(ADJECTIVE[name] for name in names.split()) for kind, names in tables.FITTING.items()
}

#: Cities and countries, English and German.
CITIES: tuple[tuple[str, str], ...] = tuple((row[0], row[-1]) for row in _rows(tables.TRAVEL))
#: Verbs that the predicate builder can complete by itself.
VERBS: tuple[Verb, ...] = tuple(_verb(row) for row in _rows(tables.VERBS))
#: Verbs by infinitive, separable ones with their prefix (anrufen).
VERB: dict[str, Verb] = {
    verb.prefix + verb.german: verb for verb in (*VERBS, *(_verb(row) for row in _rows(tables.SPECIAL_VERBS)))
}
