"""People, things and predicates drawn from the lexicon: who acts, and what verbs take.

Frames of the verb table: alone; acc and dat with a group of nouns; give (dative person, accusative
thing); prep with the prepositions of both languages and a case; place; to (a destination); to_be (in a city).
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from lite_nmt.data.generated.clauses import Clause, Pair, Predicate, join
from lite_nmt.data.generated.draw import chance, pick, pick_weighted
from lite_nmt.data.generated.lexicon import ADJECTIVES, COMPOUNDS, NOUNS, PLACES, VERBS, Adjective, Noun, Verb
from lite_nmt.data.generated.numbers import small_number, time_for
from lite_nmt.data.generated.phrases import (
    ACC, DAT, HE, I, SHE, THEY, WE, YOU, YOU_TWO, NounPhrase, contract, named, noun_phrase, own, owned_by,
)  # fmt: skip
from lite_nmt.data.generated.tables import CITIES, GIVEN_NAMES, SURNAMES
from lite_nmt.data.generated.verbs import FUTURE, LIKING, PAST, PAST_MODALS, PRESENT, PRESENT_MODALS, PROGRESSIVE

_SUBJECT_PRONOUNS = ((I, 6), (YOU, 4), (HE, 5), (SHE, 5), (WE, 5), (YOU_TWO, 2), (THEY, 5))
#: No "them" in the accusative, where "sie" would also be "her".
_OBJECT_PRONOUNS = {ACC: (I, YOU, HE, SHE, WE), DAT: (I, YOU, HE, SHE, WE, THEY)}
#: Frames for "likes to" and gern: without an object, which would quarrel with gern about the order.
_LIKED = ("alone", "place", "to")
#: Verbs that happily say where.
_LOCATED = ("essen trinken lesen schreiben kaufen finden verlieren treffen bestellen kochen suchen sehen").split()
_NAMED = tuple((name, gender) for gender in "fm" for name in GIVEN_NAMES[gender])
_TITLES = {"m": ("Mr.", "Herr"), "f": ("Ms.", "Frau")}


def adjective_for(rng: Random, noun: Noun, probability: float) -> Adjective | None:
    """An adjective that suits the noun, or none."""
    fitting = ADJECTIVES.get(noun.kind, ())
    return pick(rng, fitting) if fitting and chance(rng, probability) else None


def noun_from(rng: Random, group: str) -> Noun:
    """A noun of a group, sometimes as the head of a compound."""
    noun = pick(rng, NOUNS[group])
    compounds = COMPOUNDS.get(noun.english, ())
    return pick(rng, compounds) if compounds and chance(rng, 0.3) else noun


def a_name(rng: Random) -> NounPhrase:
    """Anna, Paul, Mr. Weber, Ms. Fischer."""
    if chance(rng, 0.2):
        gender = pick(rng, "mf")
        return named(pick(rng, SURNAMES), gender, _TITLES[gender])
    return named(*pick(rng, _NAMED))


def a_person(rng: Random, plural: float = 0.15) -> NounPhrase:
    """Somebody by name, a relative (my sister) or somebody else (the young teacher, the guests)."""
    form = rng.random()
    if form < 0.4:
        return a_name(rng)
    kind = "family" if form < 0.65 else "people"
    noun = pick(rng, NOUNS[kind])
    determiner = pick_weighted(
        rng, (("my", 5), ("your", 3), ("his", 3), ("our", 3)) if kind == "family" else (("the", 8), ("this", 1), ("my", 1))
    )
    return noun_phrase(noun, determiner, chance(rng, plural), adjective_for(rng, noun, 0.15))


def an_actor(rng: Random) -> NounPhrase:
    """A subject who can do things: a pronoun or a person."""
    return pick_weighted(rng, _SUBJECT_PRONOUNS) if chance(rng, 0.45) else a_person(rng)


def _someone_else(rng: Random, subject: NounPhrase, case: int, pronouns: bool) -> NounPhrase:
    """A person other than the subject; never "I ... me", which German would say with a reflexive."""
    if pronouns and chance(rng, 0.35):
        circles = ((0, 3), (1, 4))
        own_circle = next((circle for circle in circles if subject.agreement in circle), ())
        return pick(rng, [other for other in _OBJECT_PRONOUNS[case] if other.agreement not in own_circle])
    while True:
        person = a_person(rng)
        if person.head != subject.head:
            return person


def _thing(rng: Random, group: str, subject: NounPhrase, negated: bool, definite: bool) -> tuple[NounPhrase, bool]:
    """A thing, and whether its "kein" already says the "not"."""
    noun = noun_from(rng, group)
    adjective = adjective_for(rng, noun, 0.25)
    if not noun.plural:
        bare = noun.kind == "leisure" or (not definite and chance(rng, 0.7))
        if bare:
            return noun_phrase(noun, "no" if negated else "", adjective=adjective), negated
        return noun_phrase(noun, "the", adjective=adjective), False
    local = noun.kind in ("rooms", "openings", "thoughts")
    form = pick_weighted(
        rng,
        (("the", 40), ("own", 15), ("this", 8), ("the many", 6), ("owner", 6))
        + (() if definite else (("a", 10),) if local else (("a", 35), ("many", 12), ("number", 6))),
    )
    if form == "own":
        return noun_phrase(noun, own(subject) or "the", adjective=adjective), False
    if form == "owner":
        owner = a_person(rng, plural=0)
        if owner.head != subject.head:
            return owned_by(owner, noun, adjective), False
    if form == "number" and not negated:
        return noun_phrase(noun, "", True, adjective, small_number(rng)), False
    if form in ("a", "many"):
        determiner = "no" if negated else "a" if form == "a" else ""
        return noun_phrase(noun, determiner, form == "many", adjective), negated
    return noun_phrase(noun, "this" if form == "this" else "the", form == "the many", adjective), False


def place_at(rng: Random) -> Pair:
    """Where: in the old park, im alten Park; at home, zu Hause."""
    if chance(rng, 0.15):
        return "at home", "zu Hause"
    place = pick(rng, PLACES[pick(rng, ("rooms", "sites"))])
    phrase = noun_phrase(place.noun, "the", adjective=adjective_for(rng, place.noun, 0.12))
    return f"{place.english_at} {phrase.english}", contract(place.german_at, phrase.german[DAT])


def _destination(rng: Random, reach: str) -> Pair:
    if reach == "cities" or (reach == "far" and chance(rng, 0.5)):
        english, german = pick(rng, CITIES)
        return f"to {english}", f"nach {german}"
    sites = [place for place in PLACES["sites"] if reach == "near" or place.noun.english != "city"]
    place = pick(rng, sites)
    phrase = noun_phrase(place.noun, "the", adjective=adjective_for(rng, place.noun, 0.12))
    case = DAT if place.german_to == "zu" else ACC
    return f"to {phrase.english}", contract(place.german_to, phrase.german[case])


def predicate(
    rng: Random, verb: Verb, subject: NounPhrase, negated: bool = False, definite: bool = False
) -> Predicate:
    """Complete a verb as its frame asks. definite: no new things, as in requests."""
    frame, words = verb.frame[0], verb.frame[1:]
    if frame == "alone":
        return Predicate(verb, negated=negated, nicht=negated)
    if frame == "place":
        english, german = place_at(rng) if chance(rng, 0.5) else ("", "")
        return Predicate(verb, english, complement=german, negated=negated, nicht=negated)
    if frame in ("to", "to be"):
        english, german = _destination(rng, words[0])
        if frame == "to be":
            english, german = "in" + english[2:], "in" + german[4:]
        return Predicate(verb, english, complement=german, negated=negated, nicht=negated)
    if frame == "prep":
        person = _someone_else(rng, subject, ACC if words[2] == "acc" else DAT, pronouns=True)
        german = contract(words[1], person.german[ACC if words[2] == "acc" else DAT])
        english = f"{words[0]} {person.english_object}"
        return Predicate(verb, english, complement=german, negated=negated, nicht=negated, used=(person.head,))
    if frame == "give":
        receiver = _someone_else(rng, subject, DAT, pronouns=True)
        thing, kein = _thing(rng, words[0], subject, negated, definite)
        english = join(receiver.english_object, thing.english_object)
        to_whom, what = receiver.german[DAT], thing.german[ACC]
        pronoun, objects = ("", join(to_whom, what)) if receiver.kind else (to_whom, what)
        return Predicate(verb, english, pronoun, objects, "", negated, negated and not kein, (receiver.head, thing.head))
    return _with_object(rng, verb, subject, negated, definite)


def _with_object(rng: Random, verb: Verb, subject: NounPhrase, negated: bool, definite: bool) -> Predicate:
    case, group = ACC if verb.frame[0] == "acc" else DAT, verb.frame[1]
    if group in ("anyone", "people"):
        # "pick up Anna" but "pick her up": particle verbs (people) take no pronouns
        thing, kein = _someone_else(rng, subject, case, pronouns=group == "anyone"), False
    else:
        thing, kein = _thing(rng, group, subject, negated, definite)
    located = verb.german in _LOCATED and not verb.prefix and chance(rng, 0.2)
    place, german_place = place_at(rng) if located else ("", "")
    pronoun, objects = ("", thing.german[case]) if thing.kind else (thing.german[case], "")
    english = join(thing.english_object, place)
    return Predicate(verb, english, pronoun, objects, german_place, negated, negated and not kein, (thing.head,))


def _tense(rng: Random, verb: Verb) -> str:
    if verb.aspect == "s":
        return PRESENT
    if verb.aspect == "p":
        return PAST if chance(rng, 0.8) else FUTURE
    if verb.aspect == "a" and verb.frame[0] in _LIKED and chance(rng, 0.15):
        return LIKING
    tense = pick_weighted(
        rng, ((PAST, 38), (FUTURE, 12), (PROGRESSIVE, 13), (PRESENT, 13), ("modal", 17), ("past modal", 7))
    )
    if tense == PROGRESSIVE and verb.aspect == "m":
        return PAST
    return pick(rng, PRESENT_MODALS) if tense == "modal" else pick(rng, PAST_MODALS) if tense == "past modal" else tense


def a_clause(
    rng: Random,
    subject: NounPhrase | None = None,
    tenses: Sequence[str] = (),
    verbs: Sequence[Verb] = VERBS,
    dates: bool = False,
    may_negate: bool = True,
) -> Clause:
    """Somebody does something at some time. tenses: draw from these instead of what suits the verb."""
    verb = pick(rng, verbs)
    while tenses and verb.aspect == "s":
        verb = pick(rng, verbs)
    who = subject or an_actor(rng)
    tense = pick(rng, tenses) if tenses else _tense(rng, verb)
    state = verb.aspect == "s"
    habit = tense in (PROGRESSIVE, LIKING) or (tense == PRESENT and not state)
    negated = may_negate and not habit and chance(rng, 0.17)
    what = predicate(rng, verb, who, negated)
    return Clause(who, what, tense, None if state else time_for(rng, tense, dates))
