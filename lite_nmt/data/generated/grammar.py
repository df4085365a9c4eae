"""The sentence patterns and how often each is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from lite_nmt.data.generated.clauses import (
    Adverbial, Clause, Pair, Predicate, english_imperative, english_infinitive, english_question,
    english_statement, german_final, german_imperative, german_infinitive, german_question, german_statement, join,
)  # fmt: skip
from lite_nmt.data.generated.draw import chance, pick, pick_weighted
from lite_nmt.data.generated.facts import fact
from lite_nmt.data.generated.lexicon import ADJECTIVE, ADJECTIVES, NOUNS, VERB, VERBS, Adjective, Verb
from lite_nmt.data.generated.numbers import time_for
from lite_nmt.data.generated.phrases import (
    ACC, DAT, GEN, HE, IT, NOM, SHE, WHO, YOU, NounPhrase, contract, indefinite, noun_phrase, owned_by,
    pronoun_for, relative,
)  # fmt: skip
from lite_nmt.data.generated.predicates import (
    a_clause, a_person, adjective_for, an_actor, noun_from, place_at, predicate,
)  # fmt: skip
from lite_nmt.data.generated.verbs import FUTURE, PAST, PAST_MODALS, PRESENT, PRESENT_MODALS

_BE = VERB["sein"]
_FEELINGS = "tired sick hungry happy sad".split()
_KINDS = (
    "animals food reading things upright furniture clothes vehicles machines buildings events thoughts rooms "
    "sites openings"
).split()
#: For requests: sensible to ask for, with a definite object.
_REQUESTED = tuple(
    verb for verb in VERBS
    if verb.frame[0] in ("acc", "dat", "give", "prep") and verb.aspect in "am"
    and verb.english not in ("see", "dream", "think", "like")
)  # fmt: skip
_TO_THINGS = tuple(verb for verb in VERBS if verb.frame[0] == "acc" and verb.aspect == "a")
_GOING = tuple(verb for verb in VERBS if verb.frame[0] == "to" and verb.aspect == "a")
_WITH_OBJECT = tuple(verb for verb in VERBS if verb.frame[0] in ("acc", "dat"))


def _statement(rng: Random) -> Pair:
    clause = a_clause(rng, dates=True)
    may_front = clause.time and not clause.time.inner and clause.time.german not in ("gerade", "gern")
    front = bool(may_front) and chance(rng, 0.35)
    return english_statement(clause, front) + ".", german_statement(clause, front) + "."


def _question(rng: Random) -> Pair:
    clause = a_clause(rng, may_negate=False, dates=True)
    return english_question(clause) + "?", german_question(clause) + "?"


def _asking(rng: Random) -> Pair:
    """When, where, why; who as the subject; what and whom as the object."""
    form = rng.random()
    if form < 0.35:
        clause = a_clause(rng, subject=WHO, may_negate=False)
        return english_statement(clause) + "?", german_statement(clause) + "?"
    if form < 0.6:
        asked, german = pick(rng, (("why", "warum"), ("when", "wann")))
        clause = a_clause(rng, tenses=(PAST, FUTURE, "have to", "want to"), may_negate=False)
        if asked == "when":
            clause = clause.without_time()
        return english_question(clause, asked) + "?", german_question(clause, german) + "?"
    clause, case = _objectless(rng, _WITH_OBJECT)
    if clause.predicate.verb.frame[1] in ("anyone", "people"):
        asked, german = WHO.english_object, WHO.german[case]
    else:
        asked, german = "what", "was"
    return english_question(clause, asked) + "?", german_question(clause, german) + "?"


def _objectless(rng: Random, verbs: tuple[Verb, ...]) -> tuple[Clause, int]:
    """A clause whose object is asked for, or stands in front as a relative pronoun, and the object's case."""
    verb = pick(rng, verbs)
    tense = PRESENT if verb.aspect == "s" else pick_weighted(rng, ((PAST, 5), (FUTURE, 2), ("want to", 1)))
    time = None if verb.aspect == "s" else time_for(rng, tense, dates=False)
    return Clause(an_actor(rng), Predicate(verb), tense, time), ACC if verb.frame[0] == "acc" else DAT


def _request(rng: Random) -> Pair:
    negated = chance(rng, 0.2)
    what = predicate(rng, pick(rng, _REQUESTED), YOU, negated, definite=True)
    time = Adverbial(*pick(rng, (("today", "heute"), ("tomorrow", "morgen"), ("now", "jetzt"))))
    clause = Clause(YOU, what, time=time if chance(rng, 0.35) else None)
    english, german = english_imperative(clause), german_imperative(clause)
    return (f"please {english}.", f"bitte {german}.") if chance(rng, 0.6) else (f"{english}!", f"{german}!")


def _being(adjective: Adjective, negated: bool = False) -> Predicate:
    return Predicate(_BE, adjective.english, complement=adjective.german, negated=negated, nicht=negated)


def _something(rng: Random, described: float = 0.3) -> NounPhrase:
    """A person or a thing as the subject of a description."""
    if chance(rng, 0.25):
        return a_person(rng)
    noun = noun_from(rng, pick(rng, _KINDS))
    adjective = adjective_for(rng, noun, described)
    if chance(rng, 0.2):
        return owned_by(a_person(rng, plural=0), noun, adjective)
    plural = bool(noun.plural) and chance(rng, 0.2)
    return noun_phrase(noun, pick(rng, ("the", "the", "the", "this", "my", "your", "our")), plural, adjective)


def _quality(rng: Random, subject: NounPhrase, compared: bool = False) -> Adjective:
    """An adjective for the subject that is not in its name already."""
    kind = "people" if subject.kind in ("", "name") else subject.kind
    fitting = [a for a in ADJECTIVES[kind] if a.english not in subject.english.split()]
    return pick(rng, [a for a in fitting if a.german_more] if compared else fitting)


def _description(rng: Random) -> Pair:
    subject = _something(rng)
    tense = PAST if chance(rng, 0.3) else PRESENT
    form = rng.random()
    if form < 0.45:
        clause = Clause(subject, _being(_quality(rng, subject), chance(rng, 0.2)), tense)
        if chance(rng, 0.25):
            return english_question(clause) + "?", german_question(clause) + "?"
        return english_statement(clause) + ".", german_statement(clause) + "."
    quality, other = _quality(rng, subject, compared=True), _something(rng, described=0)
    while other.kind != subject.kind or other.head == subject.head:
        other = _something(rng, described=0)
    if form < 0.8:
        english, german = f"{quality.english_more} than", f"{quality.german_more} als"
        negated = False
    else:
        english, german, negated = f"as {quality.english} as", f"so {quality.german} wie", chance(rng, 0.5)
    english, german = f"{english} {other.english}", f"{german} {other.german[NOM]}"
    clause = Clause(subject, Predicate(_BE, english, complement=german, negated=negated, nicht=negated), tense)
    return english_statement(clause) + ".", german_statement(clause) + "."


_SPOTS = (
    ("on", "auf", ("table", "chair", "bed", "sofa")),
    ("under", "unter", ("table", "chair", "bed", "sofa")),
    ("next to", "neben", ("table", "chair", "bed", "sofa", "cupboard", "door", "window")),
    ("behind", "hinter", ("sofa", "cupboard", "door")),
    ("in front of", "vor", ("cupboard", "door", "window", "house")),
    ("in", "in", ("cupboard", "bag")),
)


def _position(rng: Random) -> Pair:
    """Two-way prepositions: lying on the table (dative), putting it on the table (accusative)."""
    upright = chance(rng, 0.4)
    english, german, spots = pick(rng, _SPOTS[:3] if upright else _SPOTS)
    spot_noun = next(noun for noun in NOUNS["nouns"] if noun.english == pick(rng, spots))
    return english, german + spot_noun.german
