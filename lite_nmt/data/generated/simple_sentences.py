"""Sentences of one clause: statements, questions, requests, descriptions, positions."""

from __future__ import annotations

from random import Random

from lite_nmt.data.generated.clauses import Adverbial, Clause, Predicate, say
from lite_nmt.data.generated.draw import chance, pick, pick_weighted
from lite_nmt.data.generated.lexicon import ADJECTIVES, NOUN, NOUNS, VERB, VERBS, Adjective, Verb
from lite_nmt.data.generated.numbers import time_for
from lite_nmt.data.generated.phrases import (
    ACC,
    DAT,
    NOM,
    WHO,
    YOU,
    NounPhrase,
    Pair,
    contract,
    noun_phrase,
    owned_by,
)
from lite_nmt.data.generated.predicates import (
    a_clause,
    a_person,
    adjective_for,
    an_actor,
    noun_from,
    place_at,
    predicate,
    someone_else,
)
from lite_nmt.data.generated.verbs import FUTURE, PAST, PRESENT, PROGRESSIVE

_DESCRIBED = (
    *("people", "animals", "food", "reading", "things", "upright", "furniture", "clothes", "vehicles"),
    *("machines", "buildings", "events", "thoughts", "rooms", "sites", "openings"),
)
_KEPT_INDOORS = ("upright", "furniture", "machines", "things", "reading")
_OWNED = ("things", "vehicles", "animals", "buildings", "reading", "clothes")
#: What one can ask somebody to do, with a definite object.
_REQUESTED = tuple(
    verb
    for verb in VERBS
    if verb.frame[0] in ("acc", "dat", "give", "prep") and verb.aspect in "am" and verb.english not in ("see", "dream")
)
_WITH_OBJECT = tuple(verb for verb in VERBS if verb.frame[0] in ("acc", "dat"))
_SPOTS = (
    ("on", "auf", ("table", "chair", "bed", "sofa")),
    ("under", "unter", ("table", "chair", "bed", "sofa")),
    ("next to", "neben", ("table", "chair", "bed", "cupboard", "door", "window")),
    ("behind", "hinter", ("sofa", "cupboard", "door")),
    ("in front of", "vor", ("cupboard", "door", "window", "house")),
)


def statement(rng: Random) -> Pair:
    """Anna bought an apple yesterday. Yesterday, Anna bought an apple."""
    clause = a_clause(rng, dates=True)
    front = clause.may_front() and chance(rng, 0.35)
    return say("{}.", "{}.", clause.fronted() if front else clause.statement())


def question(rng: Random) -> Pair:
    """Did Anna buy an apple yesterday?"""
    return say("{}?", "{}?", a_clause(rng, may_negate=False, dates=True).question())


def open_question(rng: Random) -> Pair:
    """Who bought an apple? When did Anna buy an apple? What did Anna buy?"""
    form = rng.random()
    if form < 0.35:
        return say("{}?", "{}?", a_clause(rng, subject=WHO, may_negate=False).statement())
    if form < 0.6:
        asked = pick(rng, (("why", "warum"), ("when", "wann")))
        clause = a_clause(rng, tenses=(PAST, FUTURE, "have to", "want to"), may_negate=False)
        if asked[0] == "when":
            clause = clause.without_time()
        return say("{}?", "{}?", clause.question(asked))
    clause, case = objectless(rng, _WITH_OBJECT)
    person = clause.predicate.verb.frame[1] in ("anyone", "people")
    return say("{}?", "{}?", clause.question(("whom", WHO.german[case]) if person else ("what", "was")))


def objectless(rng: Random, verbs: tuple[Verb, ...]) -> tuple[Clause, int]:
    """A clause whose object is asked for, or stands ahead as a relative pronoun, and that object's case."""
    verb = pick(rng, verbs)
    tense = PRESENT if verb.aspect == "s" else pick_weighted(rng, ((PAST, 5), (FUTURE, 2), ("want to", 1)))
    time = None if verb.aspect == "s" else time_for(rng, tense, dates=False)
    return Clause(an_actor(rng), Predicate(verb), tense, time), ACC if verb.frame[0] == "acc" else DAT


def request(rng: Random) -> Pair:
    """Please open the window. Do not open the window!"""
    what = predicate(rng, pick(rng, _REQUESTED), YOU, negated=chance(rng, 0.2), definite=True)
    time = Adverbial(*pick(rng, (("today", "heute"), ("tomorrow", "morgen"), ("now", "jetzt"))))
    asked = Clause(YOU, what, time=time if chance(rng, 0.35) else None).request()
    return say("please {}.", "bitte {}.", asked) if chance(rng, 0.6) else say("{}!", "{}!", asked)


def being(english: str, german: str, negated: bool = False) -> Predicate:
    """Is tired, is not tired."""
    return Predicate(VERB["sein"], english, complement=german, negated=negated)


def quality(rng: Random, subject: NounPhrase, compared: bool = False) -> Adjective:
    """An adjective for the subject that is not in its name already."""
    kind = "people" if subject.kind in ("", "name") else subject.kind
    fitting = [each for each in ADJECTIVES[kind] if each.english not in subject.english.split()]
    return pick(rng, [each for each in fitting if each.german_more] if compared else fitting)


def _something(rng: Random, kind: str, described: float = 0.3) -> NounPhrase:
    """A person or a thing of a kind, to be described."""
    if kind == "people":
        return a_person(rng)
    noun = noun_from(rng, kind)
    adjective = adjective_for(rng, noun, described)
    if chance(rng, 0.2):
        return owned_by(a_person(rng, plural=0), noun, adjective)
    determiner = pick_weighted(rng, (("the", 3), ("this", 1), ("my", 1), ("your", 1), ("our", 1)))
    return noun_phrase(noun, determiner, bool(noun.plural) and chance(rng, 0.2), adjective)


def description(rng: Random) -> Pair:
    """The table was not expensive. The table is older than the chair. She is as strong as Anna."""
    kind, form = pick(rng, _DESCRIBED), rng.random()
    subject = an_actor(rng) if kind == "people" else _something(rng, kind)
    tense = PAST if chance(rng, 0.3) else PRESENT
    how = quality(rng, subject, compared=form >= 0.5)
    if form < 0.1:
        return say("{}?", "{}?", Clause(subject, being(how.english, how.german), tense).question())
    if form < 0.5:
        what = being(how.english, how.german, negated=chance(rng, 0.2))
        return say("{}.", "{}.", Clause(subject, what, tense).statement())
    other = _something(rng, kind, described=0)
    while other.head == subject.head:
        other = _something(rng, kind, described=0)
    to, german_to = other.english, other.german[NOM]
    if form < 0.8:
        what = being(f"{how.english_more} than {to}", f"{how.german_more} als {german_to}")
    elif form < 0.9:
        what = being(f"as {how.english} as {to}", f"genauso {how.german} wie {german_to}")
    else:
        what = being(f"as {how.english} as {to}", f"so {how.german} wie {german_to}", negated=True)
    return say("{}.", "{}.", Clause(subject, what, tense).statement())


def position(rng: Random) -> Pair:
    """The book is lying on the table (auf dem Tisch). Anna put the book on the table (auf den Tisch)."""
    upright, negated, form = chance(rng, 0.4), chance(rng, 0.15), rng.random()
    english, german, spots = pick(rng, _SPOTS)
    spot = noun_phrase(NOUN[pick(rng, spots)], "the")
    where, at, to = f"{english} {spot.english}", contract(german, spot.german[DAT]), f"{german} {spot.german[ACC]}"
    noun = pick(rng, NOUNS["upright" if upright else "flat"])
    determiner = pick(rng, ("the", "the", "my", "your", "this"))
    thing = noun_phrase(noun, determiner, adjective=adjective_for(rng, noun, 0.25))
    if form < 0.45:
        verb, tense = VERB["stellen" if upright else "legen"], pick(rng, (PAST, PAST, FUTURE, "have to", "can"))
        put = Predicate(verb, f"{thing.english} {where}", "", thing.german[ACC], to, negated)
        return say("{}.", "{}.", Clause(an_actor(rng), put, tense, time_for(rng, tense, dates=False)).statement())
    subject, verb = thing, VERB["stehen" if upright else "liegen"]
    if form < 0.6:
        subject, verb = a_person(rng), VERB[pick(rng, ("sitzen", "stehen"))]
    if form > 0.93:
        return say("{}?", "{}?", Clause(subject, Predicate(verb), PROGRESSIVE).question(("where", "wo")))
    what = Predicate(verb, where, complement=at, negated=negated)
    return say("{}.", "{}.", Clause(subject, what, PROGRESSIVE).statement())


def existence(rng: Random) -> Pair:
    """In the kitchen, there is a big table."""
    noun, plural = noun_from(rng, pick(rng, _KEPT_INDOORS)), chance(rng, 0.3)
    thing = noun_phrase(noun, "" if plural else "a", plural, adjective_for(rng, noun, 0.5))
    now, past = ("are", "were") if plural else ("is", "was")
    there = (f"there {past}", "gab es") if chance(rng, 0.25) else (f"there {now}", "gibt es")
    phrase = (thing.english, thing.german[ACC])
    return say("{}, {} {}.", "{} {} {}.", place_at(rng, indoors=True), there, phrase)


def belonging(rng: Random) -> Pair:
    """The car belongs to the teacher; das Auto gehört dem Lehrer."""
    thing = _something(rng, pick(rng, _OWNED), described=0.4)
    owner = someone_else(rng, thing, DAT, pronouns=True)
    clause = Clause(thing, Predicate(VERB["gehören"], f"to {owner.english_object}", *owner.as_object(DAT)))
    return say("{}?", "{}?", clause.question()) if chance(rng, 0.2) else say("{}.", "{}.", clause.statement())
