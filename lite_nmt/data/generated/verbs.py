"""Verb forms: what stands in the second place, what closes the clause, and English auxiliaries.

A German clause is a bracket. `GermanVerb` holds the finite verb, what closes a main clause ("an" of
anrufen, a participle, an infinitive) and what closes a subordinate clause (anruft, angerufen hat).
"""

from __future__ import annotations

from dataclasses import dataclass

from lite_nmt.data.generated.lexicon import Verb

PRESENT, PROGRESSIVE, PAST, FUTURE, LIKING = "present", "progressive", "past", "future", "liking"

#: Modal tenses: English, and German for ich du er wir ihr sie.
_MODALS = {
    "can": "kann kannst kann können könnt können",
    "could": "konnte konntest konnte konnten konntet konnten",
    "have to": "muss musst muss müssen müsst müssen",
    "had to": "musste musstest musste mussten musstet mussten",
    "want to": "will willst will wollen wollt wollen",
    "wanted to": "wollte wolltest wollte wollten wolltet wollten",
    "may": "darf darfst darf dürfen dürft dürfen",
    "was allowed to": "durfte durftest durfte durften durftet durften",
    "should": "sollte solltest sollte sollten solltet sollten",
    "would like to": "möchte möchtest möchte möchten möchtet möchten",
}
PRESENT_MODALS = ("can", "have to", "want to", "may", "should", "would like to")
PAST_MODALS = ("could", "had to", "wanted to", "was allowed to")

_PRESENT = {
    "sein": "bin bist ist sind seid sind",
    "haben": "habe hast hat haben habt haben",
    "werden": "werde wirst wird werden werdet werden",
    "wissen": "weiß weißt weiß wissen wisst wissen",
}
#: Only these two are told in the simple past; every other verb takes the perfect.
_SIMPLE_PAST = {
    "sein": "war warst war waren wart waren",
    "haben": "hatte hattest hatte hatten hattet hatten",
}
WERDEN_PAST = ("wurde", "wurdest", "wurde", "wurden", "wurdet", "wurden")


@dataclass(frozen=True)
class GermanVerb:
    """The finite verb, the end of a main clause, and the end of a subordinate clause."""

    finite: str
    closing: str
    final: str


@dataclass(frozen=True)
class EnglishVerb:
    """The auxiliary and the rest, for questions and "not", and the plain form for statements."""

    auxiliary: str
    rest: str
    plain: str


def _present(german: str, third: str, person: int) -> str:
    if german in _PRESENT:
        return _PRESENT[german].split()[person]
    stem = german[:-2]
    root = third[:-1]
    if person == 0:
        return stem + "e"
    if person == 1:
        return root + ("t" if root[-1] in "sßz" else "st")
    if person == 4:
        return stem + ("et" if stem[-1] in "td" or third == stem + "et" else "t")
    return third if person == 2 else german


def imperative(verb: Verb) -> str:
    """The du-imperative without its prefix: lies, nimm, öffne, ruf."""
    stem, root = verb.german[:-2], verb.third[:-1]
    if "i" in root and "i" not in stem:
        return root
    return stem + ("e" if stem.endswith(("t", "d", "ier")) or verb.third == stem + "et" else "")


def _infinitive(verb: Verb) -> str:
    """The infinitive with its prefix: anrufen."""
    return verb.prefix + verb.german


def zu_infinitive(verb: Verb) -> str:
    """The infinitive with zu: zu lesen, anzurufen."""
    return f"{verb.prefix}zu{verb.german}" if verb.prefix else f"zu {verb.german}"


def german_verb(verb: Verb, tense: str, person: int) -> GermanVerb:
    """The German forms of a verb; person counts as in `NounPhrase.agreement`."""
    if tense in _MODALS or tense == FUTURE:
        finite = (_MODALS[tense] if tense in _MODALS else _PRESENT["werden"]).split()[person]
        return GermanVerb(finite, _infinitive(verb), f"{_infinitive(verb)} {finite}")
    if tense == PAST and verb.german not in _SIMPLE_PAST:
        auxiliary = _PRESENT["sein" if verb.auxiliary == "s" else "haben"].split()[person]
        return GermanVerb(auxiliary, verb.participle, f"{verb.participle} {auxiliary}")
    told = tense == PAST
    finite = _SIMPLE_PAST[verb.german].split()[person] if told else _present(verb.german, verb.third, person)
    return GermanVerb(finite, verb.prefix, verb.prefix + finite)


def _third_person(english: str) -> str:
    word, space, rest = english.partition(" ")
    if word == "have":
        word = "ha"
    elif word.endswith(("s", "sh", "ch", "x", "o")):
        word += "e"
    elif word.endswith("y") and word[-2] not in "aeou":
        word = word[:-1] + "ie"
    return f"{word}s{space}{rest}"


def _be(person: int, past: bool = False) -> str:
    if past:
        return "was" if person in (0, 2) else "were"
    return "am" if person == 0 else "is" if person == 2 else "are"


def english_verb(verb: Verb, tense: str, person: int) -> EnglishVerb:
    """The English forms of a verb; person counts as in `NounPhrase.agreement`."""
    base, past = verb.english, verb.past
    if tense == "had to":
        base, past, tense = f"have to {base}", f"had to {base}", PAST
    elif tense == "wanted to":
        base, past, tense = f"want to {base}", f"wanted to {base}", PAST
    elif tense in ("have to", "want to"):
        base, tense = f"{tense} {base}", PRESENT
    elif tense == LIKING:
        base, tense = f"like to {base}", PRESENT
    if base == "be" and tense in (PRESENT, PAST):
        finite = _be(person, tense == PAST)
        return EnglishVerb(finite, "", finite)
    if tense == PAST:
        return EnglishVerb("did", base, past)
    if tense == PRESENT:
        third = person == 2
        return EnglishVerb("does" if third else "do", base, _third_person(base) if third else base)
    if tense == PROGRESSIVE:
        auxiliary, rest = _be(person), verb.ing
    elif tense == "was allowed to":
        auxiliary, rest = _be(person, past=True), f"allowed to {base}"
    elif tense == "would like to":
        auxiliary, rest = "would", f"like to {base}"
    else:
        auxiliary, rest = ("will" if tense == FUTURE else tense), base
    return EnglishVerb(auxiliary, rest, f"{auxiliary} {rest}")
