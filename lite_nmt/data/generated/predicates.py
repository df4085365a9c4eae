"""People, things and predicates drawn from the lexicon: who acts, and what verbs take.

Frames of the verb table: alone; acc and dat with a group of nouns; give (dative person, accusative
thing); prep with the prepositions of both languages and a case; place; to (a destination); in (a city).
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from lite_nmt.data.generated import tables
from lite_nmt.data.generated.clauses import Clause, Predicate
from lite_nmt.data.generated.draw import chance, pick, pick_weighted
from lite_nmt.data.generated.lexicon import (
    ADJECTIVES,
    CITIES,
    COMPOUNDS,
    NOUNS,
    PLACES,
    VERBS,
    Adjective,
    Noun,
    Verb,
)
from lite_nmt.data.generated.numbers import small_number, time_for
from lite_nmt.data.generated.phrases import (
    ACC,
    DAT,
    HE,
    ME,
    SHE,
    THEY,
    WE,
    YOU,
    YOU_TWO,
    NounPhrase,
    Pair,
    contract,
    join,
    named,
    noun_phrase,
    own,
    owned_by,
)
from lite_nmt.data.generated.verbs import (
    FUTURE,
    LIKING,
    PAST,
    PAST_MODALS,
    PRESENT,
    PRESENT_MODALS,
    PROGRESSIVE,
)

_SUBJECT_PRONOUNS = ((ME, 6), (YOU, 4), (HE, 5), (SHE, 5), (WE, 5), (YOU_TWO, 2), (THEY, 5))
#: No "them" in the accusative, where "sie" would also be "her".
_OBJECT_PRONOUNS = {ACC: (ME, YOU, HE, SHE, WE), DAT: (ME, YOU, HE, SHE, WE, THEY)}
_NAMED = tuple((name, gender) for gender in "fm" for name in tables.GIVEN_NAMES[gender])
_TITLES = {"m": ("Mr.", "Herr"), "f": ("Ms.", "Frau")}
_PEOPLE_DETERMINERS = {
    "family": (("my", 5), ("your", 3), ("his", 3), ("our", 3)),
    "people": (("the", 8), ("this", 1), ("my", 1)),
}
_INDOOR_SITES = ("school", "library", "restaurant", "hotel", "museum")
_INDOORS = tuple(
    place
    for place in (*PLACES["rooms"], *PLACES["sites"])
    if place.noun.english in _INDOOR_SITES or (place.noun.kind == "rooms" and place.noun.english != "garden")
)
#: Frames for "likes to" and gern: without an object, which would quarrel with gern about the order.
_LIKED = ("alone", "place", "to")
#: Verbs with an object that happily say where.
_LOCATED = (
    *("essen", "trinken", "lesen", "schreiben", "kaufen", "finden", "verlieren", "treffen"),
    *("bestellen", "kochen", "suchen", "sehen"),
)
_OLD_THINGS = (("the", 40), ("own", 15), ("this", 8), ("the plural", 6), ("owner", 6))
_NEW_THINGS = (("a", 35), ("plural", 12), ("number", 6))


def adjective_for(rng: Random, noun: Noun, probability: float) -> Adjective | None:
    """An adjective that suits the noun, or none."""
    fitting = ADJECTIVES.get(noun.kind, ())
    return pick(rng, fitting) if fitting and chance(rng, probability) else None


def noun_from(rng: Random, group: str) -> Noun:
    """A noun of a group, sometimes as the head of a compound."""
    noun = pick(rng, NOUNS[group])
    compounds = COMPOUNDS[noun.english]
    return pick(rng, compounds) if compounds and chance(rng, 0.3) else noun


def a_person(rng: Random, plural: float = 0.15) -> NounPhrase:
    """Somebody by name, a relative (my sister) or somebody else (the young teacher, the guests)."""
    form = rng.random()
    if form < 0.08:
        gender = pick(rng, "mf")
        return named(pick(rng, tables.SURNAMES), gender, _TITLES[gender])
    if form < 0.4:
        return named(*pick(rng, _NAMED))
    kind = "family" if form < 0.65 else "people"
    noun, determiner = pick(rng, NOUNS[kind]), pick_weighted(rng, _PEOPLE_DETERMINERS[kind])
    several = bool(noun.plural) and chance(rng, plural)
    return noun_phrase(noun, determiner, several, adjective_for(rng, noun, 0.15))


def an_actor(rng: Random) -> NounPhrase:
    """A subject who can do things: a pronoun or a person."""
    return pick_weighted(rng, _SUBJECT_PRONOUNS) if chance(rng, 0.45) else a_person(rng)


def someone_else(rng: Random, subject: NounPhrase, case: int, pronouns: bool) -> NounPhrase:
    """A person other than the subject; never "I ... me", which German would say with a reflexive."""
    if pronouns and chance(rng, 0.35):
        circle = next((circle for circle in ((0, 3), (1, 4)) if subject.agreement in circle), ())
        return pick(rng, [other for other in _OBJECT_PRONOUNS[case] if other.agreement not in circle])
    while True:
        person = a_person(rng)
        if person.head != subject.head:
            return person


def _thing(rng: Random, noun: Noun, subject: NounPhrase, negated: bool, definite: bool) -> NounPhrase:
    """A thing, with a determiner that suits it; "no" where the sentence is negated and the thing new."""
    adjective = adjective_for(rng, noun, 0.25)
    if not noun.plural:
        bare = noun.kind == "leisure" or (not definite and chance(rng, 0.7))
        return noun_phrase(noun, "the" if not bare else "no" if negated else "", adjective=adjective)
    everyday = noun.kind not in ("rooms", "openings", "thoughts")
    new = () if definite else _NEW_THINGS if everyday else _NEW_THINGS[:1]
    form = pick_weighted(rng, (*_OLD_THINGS, *new))
    if form == "owner":
        owner = a_person(rng, plural=0)
        if owner.head != subject.head:
            return owned_by(owner, noun, adjective)
    if form == "number" and not negated:
        return noun_phrase(noun, "", True, adjective, small_number(rng))
    if form in ("a", "plural"):
        determiner = "no" if negated else "a" if form == "a" else ""
        return noun_phrase(noun, determiner, form == "plural", adjective)
    determiner = (own(subject) or "the") if form == "own" else "this" if form == "this" else "the"
    return noun_phrase(noun, determiner, form == "the plural", adjective)


def place_at(rng: Random, indoors: bool = False) -> Pair:
    """Where: in the old park, im alten Park; at home, zu Hause. indoors: only rooms and the like."""
    if not indoors and chance(rng, 0.15):
        return "at home", "zu Hause"
    place = pick(rng, _INDOORS if indoors else PLACES[pick(rng, ("rooms", "sites"))])
    phrase = noun_phrase(place.noun, "the", adjective=adjective_for(rng, place.noun, 0.12))
    return f"{place.english_at} {phrase.english}", contract(place.german_at, phrase.german[DAT])


def _destination(rng: Random, reach: str) -> Pair:
    if reach == "cities" or (reach == "far" and chance(rng, 0.5)):
        english, german = pick(rng, CITIES)
        return f"to {english}", f"nach {german}"
    place = pick(rng, PLACES["sites"])
    phrase = noun_phrase(place.noun, "the", adjective=adjective_for(rng, place.noun, 0.12))
    case = DAT if place.german_to == "zu" else ACC
    return f"to {phrase.english}", contract(place.german_to, phrase.german[case])


def predicate(rng: Random, verb: Verb, subject: NounPhrase, negated: bool = False, definite: bool = False) -> Predicate:
    """Complete a verb as its frame asks. definite: no new things, as in requests."""
    frame, words = verb.frame[0], verb.frame[1:]
    if frame == "alone" or (frame == "place" and chance(rng, 0.5)):
        return Predicate(verb, negated=negated)
    if frame in ("acc", "dat"):
        return _with_object(rng, verb, subject, negated, definite)
    if frame == "give":
        receiver = someone_else(rng, subject, DAT, pronouns=True)
        thing = _thing(rng, noun_from(rng, words[0]), subject, negated, definite)
        pronoun, objects = receiver.as_object(DAT)
        english = join(receiver.english_object, thing.english)
        return Predicate(verb, english, pronoun, join(objects, thing.german[ACC]), "", negated, thing.kein)
    if frame == "prep":
        case = ACC if words[2] == "acc" else DAT
        person = someone_else(rng, subject, case, pronouns=True)
        english, german = f"{words[0]} {person.english_object}", contract(words[1], person.german[case])
    elif frame == "place":
        english, german = place_at(rng)
    elif frame == "to":
        english, german = _destination(rng, words[0])
    else:
        city = pick(rng, CITIES)
        english, german = f"in {city[0]}", f"in {city[1]}"
    return Predicate(verb, english, complement=german, negated=negated)


def _with_object(rng: Random, verb: Verb, subject: NounPhrase, negated: bool, definite: bool) -> Predicate:
    case, group = ACC if verb.frame[0] == "acc" else DAT, verb.frame[1]
    if group in ("anyone", "people"):
        # "pick up Anna" but "pick her up": particle verbs ("people") take no pronouns
        thing = someone_else(rng, subject, case, pronouns=group == "anyone")
    else:
        thing = _thing(rng, noun_from(rng, group), subject, negated, definite)
    located = verb.german in _LOCATED and not verb.prefix and chance(rng, 0.2)
    place = place_at(rng) if located else ("", "")
    english, (pronoun, objects), complement = join(thing.english_object, place[0]), thing.as_object(case), place[1]
    if thing.new:
        # "den Wein zu Hause trinken", but "zu Hause Wein trinken"
        objects, complement = join(complement, objects), ""
    return Predicate(verb, english, pronoun, objects, complement, negated, thing.kein)


def _tense(rng: Random, verb: Verb) -> str:
    if verb.aspect == "s":
        return PRESENT
    if verb.aspect == "p":
        return PAST if chance(rng, 0.8) else FUTURE
    if verb.aspect == "a" and verb.frame[0] in _LIKED and chance(rng, 0.15):
        return LIKING
    ongoing = PROGRESSIVE if verb.aspect == "a" else PAST
    modal, past_modal = pick(rng, PRESENT_MODALS), pick(rng, PAST_MODALS)
    return pick_weighted(rng, ((PAST, 38), (FUTURE, 12), (ongoing, 13), (PRESENT, 13), (modal, 17), (past_modal, 7)))


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
    who, tense = subject or an_actor(rng), pick(rng, tenses) if tenses else _tense(rng, verb)
    state = verb.aspect == "s"
    habit = tense in (PROGRESSIVE, LIKING) or (tense == PRESENT and not state)
    what = predicate(rng, verb, who, may_negate and not habit and chance(rng, 0.17))
    return Clause(who, what, tense, None if state else time_for(rng, tense, dates))
