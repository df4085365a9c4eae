"""Sentences with numbers: timetables, prices, dates, ages, counts, durations."""

from __future__ import annotations

from random import Random

from lite_nmt.data.generated.clauses import Adverbial, Clause, Predicate, say
from lite_nmt.data.generated.draw import chance, pick
from lite_nmt.data.generated.lexicon import NOUN, VERB
from lite_nmt.data.generated.numbers import (
    any_number,
    clock,
    date,
    day_of_month,
    digital_clock,
    past_year,
    price,
    small_number,
    spoken_clock,
    time_for,
)
from lite_nmt.data.generated.phrases import ACC, NOM, NounPhrase, Pair, join, noun_phrase
from lite_nmt.data.generated.predicates import adjective_for, an_actor, noun_from, place_at
from lite_nmt.data.generated.simple_sentences import being
from lite_nmt.data.generated.verbs import FUTURE, PAST, PRESENT, WERDEN_PAST

_SCHEDULED = (
    (("train", "bus", "ship"), ("abfahren", "ankommen")),
    (("movie", "concert", "party", "course", "exam"), ("anfangen", "enden")),
    (("library", "museum", "supermarket", "restaurant", "school"), ("öffnen", "schließen")),
)
_SOLD = ("clothes", "things", "reading", "vehicles", "machines", "furniture", "upright")
_COUNTED = ("furniture", "upright", "machines", "things")
_LASTING = ("arbeiten", "schlafen", "tanzen", "singen", "schwimmen", "fernsehen")


def _the(rng: Random, group: str) -> NounPhrase:
    noun = noun_from(rng, group)
    return noun_phrase(noun, pick(rng, ("the", "the", "this")), adjective=adjective_for(rng, noun, 0.25))


def timetable(rng: Random) -> Pair:
    """The train will depart tomorrow at 3:15 pm."""
    names, verbs = pick(rng, _SCHEDULED)
    noun = NOUN[pick(rng, names)]
    subject = noun_phrase(noun, pick(rng, ("the", "the", "our", "this")), adjective=adjective_for(rng, noun, 0.1))
    day, at = pick(rng, (("", ""), ("", ""), ("today", "heute"), ("tomorrow", "morgen"))), clock(rng)
    tense = FUTURE if day[0] == "tomorrow" else PRESENT
    time = Adverbial(join(day[0], at[0]), join(day[1], at[1]))
    clause = Clause(subject, Predicate(VERB[pick(rng, verbs)]), tense, time)
    if chance(rng, 0.25):
        return say("{}?", "{}?", clause.question())
    return say("{}.", "{}.", clause.fronted() if chance(rng, 0.2) else clause.statement())


def cost(rng: Random) -> Pair:
    """The shirt costs €12.50. How much does the shirt cost? Anna paid €20 for the shirt."""
    thing, (english, german), form = _the(rng, pick(rng, _SOLD)), price(rng), rng.random()
    if form < 0.1:
        asked = Clause(thing, Predicate(VERB["kosten"])).question(("how much", "wie viel"))
        return say("{}?", "{}?", asked)
    if form < 0.7:
        return say("{}.", "{}.", Clause(thing, Predicate(VERB["kosten"], english, complement=german)).statement())
    tense = pick(rng, (PAST, PAST, FUTURE, "have to"))
    what, german_what = f"{english} for {thing.english}", f"für {thing.german[ACC]}"
    paid = Predicate(VERB["bezahlen"], what, objects=german, complement=german_what)
    return say("{}.", "{}.", Clause(an_actor(rng), paid, tense, time_for(rng, tense, dates=False)).statement())


def calendar(rng: Random) -> Pair:
    """Today is March 3, 2021. The exam is on March 3. The church was built in 1978."""
    form = rng.random()
    if form < 0.4:
        day = pick(rng, (("today is", "heute ist"), ("tomorrow is", "morgen ist"), ("yesterday was", "gestern war")))
        return say("{} {}.", "{} der {}.", day, date(rng))
    if form < 0.7:
        event = _the(rng, "events")
        return say("{} is on {}.", "{} ist am {}.", (event.english, event.german[NOM]), day_of_month(rng))
    building, year = _the(rng, "built"), past_year(rng)
    done = pick(rng, (("built", "gebaut"), ("sold", "verkauft"), ("repaired", "repariert")))
    return say("{} was {} in {}.", "{0} wurde {2} {1}.", (building.english, building.german[NOM]), done, (year, year))


def birth(rng: Random) -> Pair:
    """Anna was born on March 3, 1985."""
    who = an_actor(rng)
    was = ("was" if who.agreement in (0, 2) else "were", WERDEN_PAST[who.agreement])
    return say("{} {} born on {}.", "{} {} am {} geboren.", (who.english, who.german[NOM]), was, date(rng, 2010))


def hour(rng: Random) -> Pair:
    """It is half past three."""
    return say("it is {}.", "es ist {}.", spoken_clock(rng) if chance(rng, 0.5) else digital_clock(rng))


def age(rng: Random) -> Pair:
    """Paul is thirty-four years old."""
    english, german = any_number(rng)
    what, tense = being(f"{english} years old", f"{german} Jahre alt"), PAST if chance(rng, 0.15) else PRESENT
    return say("{}.", "{}.", Clause(an_actor(rng), what, tense).statement())


def count(rng: Random) -> Pair:
    """In the library, there are twenty-seven chairs."""
    noun = noun_from(rng, pick(rng, _COUNTED))
    things = noun_phrase(noun, "", True, adjective_for(rng, noun, 0.2), any_number(rng))
    where = place_at(rng, indoors=True)
    return say("{}, there are {}.", "{} gibt es {}.", where, (things.english, things.german[ACC]))


def duration(rng: Random) -> Pair:
    """Anna worked for three hours yesterday."""
    number, unit = small_number(rng), ("hours", "Stunden")
    if chance(rng, 0.3):
        number, unit = pick(rng, (("twenty", "zwanzig"), ("thirty", "dreißig"))), ("minutes", "Minuten")
    english, german = f"for {number[0]} {unit[0]}", f"{number[1]} {unit[1]}"
    what, tense = Predicate(VERB[pick(rng, _LASTING)], english, objects=german), pick(rng, (PAST, FUTURE, "want to"))
    return say("{}.", "{}.", Clause(an_actor(rng), what, tense, time_for(rng, tense, dates=False)).statement())
