"""Noun phrases in both languages: determiners, adjective endings, pronouns, owners, contractions."""

from __future__ import annotations

from dataclasses import dataclass

from lite_nmt.data.generated.lexicon import Adjective, Noun

Pair = tuple[str, str]  # English, German

NOM, ACC, DAT, GEN = range(4)

_DEFINITE = {
    "m": ("der", "den", "dem", "des"),
    "f": ("die", "die", "der", "der"),
    "n": ("das", "das", "dem", "des"),
    "p": ("die", "die", "den", "der"),
}
_RELATIVE = {
    "m": ("der", "den", "dem", "dessen"),
    "f": ("die", "die", "der", "deren"),
    "n": ("das", "das", "dem", "dessen"),
    "p": ("die", "die", "denen", "deren"),
}
#: Endings that show gender and case, on dies-, on ein- words, and on an adjective with nothing before it.
_STRONG = {
    "m": ("er", "en", "em", "es"),
    "f": ("e", "e", "er", "er"),
    "n": ("es", "es", "em", "es"),
    "p": ("e", "e", "en", "er"),
}
_STEMS = {
    "this": "dies", "a": "ein", "no": "kein", "my": "mein", "your": "dein", "his": "sein",
    "her": "ihr", "our": "unser", "their": "ihr",
}  # fmt: skip
_CONTRACTED = {
    "in dem": "im", "in das": "ins", "an dem": "am", "an das": "ans",
    "von dem": "vom", "zu dem": "zum", "zu der": "zur",
}  # fmt: skip


def join(*words: str) -> str:
    """The words that are there, with a space between."""
    return " ".join(filter(None, words))


@dataclass(frozen=True)
class NounPhrase:
    """A noun phrase: its English forms, its German cases and what agrees with it.

    agreement: 0 ich, 1 du, 2 er/sie/es, 3 wir, 4 ihr, 5 sie (they).
    slot: m, f, n, or p for every plural. head names the noun, to avoid "the dog sees the dog".
    kind: the noun's, "name" for a name, "" for a pronoun. new: mentioned for the first time (a, any, two).
    kein: it says the "not" of its sentence.
    """

    english: str
    english_object: str
    german: tuple[str, str, str, str]
    agreement: int
    slot: str
    head: str
    kind: str = ""
    new: bool = False
    kein: bool = False

    def as_object(self, case: int) -> Pair:
        """The German pronoun, or else the noun phrase, which stand in different places; the other is ""."""
        return ("", self.german[case]) if self.kind else (self.german[case], "")


def _pronoun(english: str, english_object: str, german: str, agreement: int, slot: str) -> NounPhrase:
    nominative, accusative, dative = german.split(",")
    return NounPhrase(english, english_object, (nominative, accusative, dative, ""), agreement, slot, english)


ME, YOU, HE, SHE, IT, WE, YOU_TWO, THEY = (
    _pronoun("I", "me", "ich,mich,mir", 0, ""),
    _pronoun("you", "you", "du,dich,dir", 1, ""),
    _pronoun("he", "him", "er,ihn,ihm", 2, "m"),
    _pronoun("she", "her", "sie,sie,ihr", 2, "f"),
    _pronoun("it", "it", "es,es,ihm", 2, "n"),
    _pronoun("we", "us", "wir,uns,uns", 3, "p"),
    _pronoun("you two", "you two", "ihr beide,euch beide,euch beiden", 4, "p"),
    _pronoun("they", "them", "sie,sie,ihnen", 5, "p"),
)
WHO = _pronoun("who", "whom", "wer,wen,wem", 2, "")


def pronoun_for(phrase: NounPhrase) -> NounPhrase:
    """The pronoun that takes up a phrase: Anna ... she. A pronoun takes up itself."""
    if phrase.agreement in (0, 1, 3, 4):
        return phrase
    return THEY if phrase.agreement == 5 else {"m": HE, "f": SHE, "n": IT}[phrase.slot]


def own(phrase: NounPhrase) -> str:
    """The possessive for what a subject owns, or "" where German or English would leave it open."""
    if phrase.agreement == 2:
        return {"m": "his", "f": "her"}.get(phrase.slot, "")
    return {0: "my", 1: "your", 3: "our", 5: "their"}.get(phrase.agreement, "")


def relative(antecedent: NounPhrase) -> tuple[str, str, str, str]:
    """The four cases of the relative pronoun for an antecedent."""
    return _RELATIVE[antecedent.slot]


def contract(preposition: str, phrase: str) -> str:
    """A German preposition before its phrase: im Park, zur Schule."""
    article, _, rest = phrase.partition(" ")
    joined = _CONTRACTED.get(f"{preposition} {article}")
    return f"{joined} {rest}" if joined and rest else f"{preposition} {phrase}"


def _indefinite(english: str) -> str:
    """The phrase with the English article it needs: a car, an old car."""
    return ("an " if english[0] in "aeiou" else "a ") + english


def _german_noun(noun: Noun, slot: str, case: int) -> str:
    if slot == "p":
        return noun.plural + ("n" if case == DAT and noun.plural[-1] not in "ns" else "")
    return (noun.german, noun.oblique, noun.oblique, noun.genitive)[case]


def _german_determiner(determiner: str, slot: str, case: int) -> tuple[str, bool]:
    """The determiner, and whether it shows the case, which leaves a following adjective weak."""
    if determiner == "the":
        return _DEFINITE[slot][case], True
    if determiner not in _STEMS:
        return "", False
    endingless = (slot, case) in (("m", NOM), ("n", NOM), ("n", ACC)) and determiner != "this"
    return _STEMS[determiner] + ("" if endingless else _STRONG[slot][case]), not endingless


def _ending(slot: str, case: int, shown: bool) -> str:
    if not shown:
        return _STRONG[slot][case]
    return "e" if slot != "p" and (case == NOM or (case == ACC and slot != "m")) else "en"


def noun_phrase(
    noun: Noun,
    determiner: str,
    plural: bool = False,
    adjective: Adjective | None = None,
    number: Pair = ("", ""),
) -> NounPhrase:
    """Build a phrase such as "the old tables", der alte Tisch.

    determiner: the, this, a, no, a possessive, or "" for none. number: "two", "zwei" in its place.
    "no" is kein, and "a" or "any" in English, where the verb carries the "not".
    """
    slot = "p" if plural else noun.gender
    base = join(adjective.english if adjective else "", noun.english_plural if plural else noun.english)
    if determiner == "a" or (determiner == "no" and not plural and noun.plural):
        english = _indefinite(base)
    else:
        first = {"no": "any", "this": "these" if plural else "this"}.get(determiner, determiner)
        english = join(first or number[0], base)
    cases = []
    for case in range(4):
        article, shown = _german_determiner(determiner, slot, case)
        described = adjective.stem + _ending(slot, case, shown) if adjective else ""
        cases.append(join(article or number[1], described, _german_noun(noun, slot, case)))
    german = (cases[NOM], cases[ACC], cases[DAT], cases[GEN])
    agreement, new, kein = 5 if plural else 2, determiner in ("a", "no", ""), determiner == "no"
    return NounPhrase(english, english, german, agreement, slot, noun.english, noun.kind, new, kein)


def named(name: str, gender: str, title: Pair = ("", "")) -> NounPhrase:
    """A person by name, with a title or without: Anna, Herr Weber (den Herrn Weber: weak)."""
    english = join(title[0], name)
    nominative, oblique = join(title[1], name), join(title[1] + ("n" if title[1] == "Herr" else ""), name)
    german = (nominative, oblique, oblique, oblique + "s")
    return NounPhrase(english, english, german, 2, gender, name, "name")


def owned_by(owner: NounPhrase, noun: Noun, adjective: Adjective | None = None) -> NounPhrase:
    """What a singular owner has: Anna's car, Annas Auto; the teacher's car, das Auto des Lehrers."""
    if owner.kind == "name":
        bare = noun_phrase(noun, "", adjective=adjective)
        german = tuple(f"{owner.german[GEN]} {form}" for form in bare.german)
    else:
        bare = noun_phrase(noun, "the", adjective=adjective)
        german = tuple(f"{form} {owner.german[GEN]}" for form in bare.german)
    english = join(f"{owner.english}'s", adjective.english if adjective else "", noun.english)
    nominative, accusative, dative, genitive = german
    cases = (nominative, accusative, dative, genitive)
    return NounPhrase(english, english, cases, 2, noun.gender, noun.english, noun.kind)
