"""Sentences of two clauses: conjunctions, conditions, reported and relative clauses, infinitives."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from lite_nmt.data.generated.clauses import Clause, Predicate, say
from lite_nmt.data.generated.draw import chance, pick
from lite_nmt.data.generated.lexicon import ADJECTIVE, NOUN, NOUNS, PLACES, VERB, VERBS
from lite_nmt.data.generated.phrases import (
    ACC,
    DAT,
    GEN,
    HE,
    IT,
    ME,
    NOM,
    WE,
    YOU,
    NounPhrase,
    Pair,
    noun_phrase,
    pronoun_for,
    relative,
)
from lite_nmt.data.generated.predicates import a_clause, adjective_for, an_actor, noun_from, predicate
from lite_nmt.data.generated.simple_sentences import being, objectless, quality
from lite_nmt.data.generated.verbs import FUTURE, PAST, PAST_MODALS, PRESENT, PRESENT_MODALS, PROGRESSIVE

_REASONS = (
    ("{} because {}.", "{}, weil {}."),
    ("{} because {}.", "{}, weil {}."),
    ("{} although {}.", "{}, obwohl {}."),
)
_MEANWHILES = (("{} while {}.", "{}, während {}."), ("{} before {}.", "{}, bevor {}."))
_OPPOSITIONS = (("{}, and {}.", "{} und {}."), ("{}, but {}.", "{}, aber {}."))
_REPORTS = (
    ("wissen", PRESENT, "that", "dass"),
    ("denken", PRESENT, "that", "dass"),
    ("hoffen", PRESENT, "that", "dass"),
    ("glauben", PRESENT, "that", "dass"),
    ("sagen", PAST, "that", "dass"),
    ("fragen", PAST, "whether", "ob"),
    ("fragen", PAST, "why", "warum"),
    ("wissen", PRESENT, "why", "warum"),
    ("wissen", PRESENT, "whether", "ob"),
    ("wissen", PRESENT, "when", "wann"),
)
_TRIED = (
    ("versuchen", PAST),
    ("vergessen", PAST),
    ("versprechen", PAST),
    ("anfangen", PAST),
    ("hoffen", PRESENT),
    ("planen", PRESENT),
)
_FEELINGS = ("tired", "sick", "hungry", "happy", "sad")
_JUDGED = ("important", "difficult", "good", "boring", "interesting")
_PERSONAL = ("anyone", "people")
_ONTO_PEOPLE = tuple(v for v in VERBS if v.frame[0] in ("acc", "dat") and v.frame[1] in _PERSONAL)
_ONTO_THINGS = tuple(v for v in VERBS if v.frame[0] == "acc" and v.frame[1] not in _PERSONAL and v.aspect != "s")
_NOT_SEEING_PEOPLE = tuple(v for v in VERBS if v.frame[0] != "acc" or v.frame[1] not in _PERSONAL)
_DOING = tuple(v for v in VERBS if v.aspect == "a" and v.frame[0] != "place")
_GOING = tuple(v for v in VERBS if v.aspect == "a" and v.frame[0] == "to")
_GOING_FOR = tuple(VERB[name] for name in ("kaufen", "suchen", "abholen", "besuchen", "treffen", "essen"))
_STAYING = tuple(VERB[name] for name in ("arbeiten", "schlafen"))


def _same_or_other(rng: Random, subject: NounPhrase) -> NounPhrase:
    """The pronoun for the first clause's subject, or somebody else."""
    other = an_actor(rng)
    return other if other.head != subject.head and chance(rng, 0.4) else pronoun_for(subject)


def _feeling(english: str, negated: bool = False) -> Predicate:
    return being(english, ADJECTIVE[english].german, negated)


def _state(rng: Random, who: NounPhrase, tense: str) -> Clause:
    """Somebody feels something, or has time or money."""
    negated = chance(rng, 0.3)
    if chance(rng, 0.7):
        return Clause(who, _feeling(pick(rng, _FEELINGS), negated), tense)
    owned = noun_phrase(NOUN[pick(rng, ("time", "money"))], "no" if negated else "")
    what = Predicate(VERB["haben"], owned.english, objects=owned.german[ACC], negated=negated, kein=owned.kein)
    return Clause(who, what, tense)


def _rain(tense: str) -> Clause:
    return Clause(IT, Predicate(VERB["regnen"]), tense)


def reason(rng: Random) -> Pair:
    """Anna did not work yesterday because she was sick."""
    past, form = chance(rng, 0.6), rng.random()
    main = a_clause(rng, tenses=(PAST, PAST, *PAST_MODALS) if past else (FUTURE, *PRESENT_MODALS))
    who = _same_or_other(rng, main.subject)
    if form < 0.1:
        why = _rain(PAST if past else PROGRESSIVE)
    elif form < 0.65:
        why = _state(rng, who, PAST if past else PRESENT)
    else:
        why = a_clause(rng, who, (PAST, "could", "had to"))
    return say(*pick(rng, _REASONS), main.statement(), why.subordinate())


def condition(rng: Random) -> Pair:
    """If it rains, Anna will work at home; with the condition first, or second."""
    main = a_clause(rng, tenses=(FUTURE, FUTURE, *PRESENT_MODALS))
    given = _rain(PRESENT) if chance(rng, 0.15) else _state(rng, _same_or_other(rng, main.subject), PRESENT)
    if chance(rng, 0.6):
        return say("if {}, {}.", "wenn {}, {}.", given.subordinate(), main.after_clause())
    return say("{} if {}.", "{}, wenn {}.", main.statement(), given.subordinate())


def meanwhile(rng: Random) -> Pair:
    """Anna slept while Paul cooked the soup. When he was young, Paul sold bicycles."""
    main = a_clause(rng, tenses=(PAST,), may_negate=False).without_time()
    if chance(rng, 0.3):
        when = Clause(pronoun_for(main.subject), _feeling(pick(rng, ("young", "sick", "tired", "sad"))), PAST)
        return say("when {}, {}.", "als {}, {}.", when.subordinate(), main.after_clause())
    other = a_clause(rng, tenses=(PAST,), may_negate=False).without_time()
    return say(*pick(rng, _MEANWHILES), main.statement(), other.subordinate())


def opposition(rng: Random) -> Pair:
    """Anna bought bread, and Paul cooked the soup."""
    return say(*pick(rng, _OPPOSITIONS), a_clause(rng).statement(), a_clause(rng).statement())


def report(rng: Random) -> Pair:
    """I know that Anna called Paul. She does not know whether Anna will call Paul."""
    infinitive, tense, english, german = pick(rng, _REPORTS)
    negated = infinitive == "wissen" and (english in ("whether", "when") or chance(rng, 0.3))
    main = Clause(an_actor(rng), Predicate(VERB[infinitive], negated=negated), tense)
    who = pronoun_for(main.subject) if chance(rng, 0.25) else None
    told = a_clause(rng, who, () if english == "that" else (PAST, FUTURE), may_negate=english == "that")
    if english == "when":
        told = told.without_time()
    return say("{} {} {}.", "{}, {} {}.", main.statement(), (english, german), told.subordinate())


def _someone(rng: Random) -> NounPhrase:
    noun = pick(rng, NOUNS["people"])
    return noun_phrase(noun, "the", chance(rng, 0.2), adjective_for(rng, noun, 0.15))


def _who(rng: Random) -> tuple[NounPhrase, Pair]:
    """The man who invited us; der Mann, der uns eingeladen hat."""
    someone = _someone(rng)
    who = NounPhrase("who", "", relative(someone), someone.agreement, someone.slot, "")
    # "die Frau, die Anna sieht" is also the woman whom Anna sees; "der" and "den" differ
    clause = a_clause(rng, who, verbs=VERBS if someone.slot == "m" else _NOT_SEEING_PEOPLE)
    return someone, clause.subordinate()


def _whom(rng: Random) -> tuple[NounPhrase, Pair]:
    """The woman whom Paul helped; die Frau, der Paul geholfen hat."""
    someone, (clause, case) = _someone(rng), objectless(rng, _ONTO_PEOPLE)
    if case == ACC and someone.slot != "m":
        clause = replace(clause, subject=pick(rng, (ME, YOU, HE, WE)))
    return someone, say("whom {1}", "{0} {1}", ("", relative(someone)[case]), clause.subordinate())


def _that(rng: Random) -> tuple[NounPhrase, Pair]:
    """The book that Anna read; das Buch, das Anna gelesen hat."""
    clause, _ = objectless(rng, _ONTO_THINGS)
    noun = noun_from(rng, clause.predicate.verb.frame[1])
    thing = noun_phrase(noun, "the", bool(noun.plural) and chance(rng, 0.2), adjective_for(rng, noun, 0.15))
    return thing, say("that {1}", "{0} {1}", ("", relative(thing)[ACC]), clause.subordinate())


def _in_which(rng: Random) -> tuple[NounPhrase, Pair]:
    """The hotel in which Anna works; das Hotel, in dem Anna arbeitet."""
    place = pick(rng, PLACES["sites"])
    phrase = noun_phrase(place.noun, "the", adjective=adjective_for(rng, place.noun, 0.15))
    where = (f"{place.english_at} which", f"{place.german_at} {relative(phrase)[DAT]}")
    clause = Clause(an_actor(rng), Predicate(pick(rng, _STAYING)), pick(rng, (PRESENT, PAST)))
    return phrase, say("{} {}", "{} {}", where, clause.subordinate())


def _whose(rng: Random) -> tuple[NounPhrase, Pair]:
    """The man whose car is red; der Mann, dessen Auto rot ist."""
    someone, owned = _someone(rng), pick(rng, NOUNS[pick(rng, ("vehicles", "animals", "buildings"))])
    german = f"{relative(someone)[GEN]} {owned.german}"
    whose = NounPhrase(f"whose {owned.english}", "", (german,) * 4, 2, owned.gender, owned.english, owned.kind)
    how = quality(rng, whose)
    return someone, Clause(whose, being(how.english, how.german)).subordinate()


def relative_sentence(rng: Random) -> Pair:
    """The woman whom Paul helped is friendly. I know the man whose car is red."""
    someone, clause = pick(rng, (_who, _who, _who, _whom, _whom, _that, _that, _that, _in_which, _whose))(rng)
    if chance(rng, 0.4):
        verb = VERB["kennen" if someone.kind in ("people", "sites") else "brauchen"]
        main = Clause(an_actor(rng), Predicate(verb, someone.english, objects=someone.german[ACC]))
        return say("{} {}.", "{}, {}.", main.statement(), clause)
    how, described = quality(rng, someone), NounPhrase("", "", ("",) * 4, someone.agreement, "", "")
    is_so = Clause(described, being(how.english, how.german, chance(rng, 0.15)), PAST if chance(rng, 0.2) else PRESENT)
    return say("{} {} {}.", "{}, {}, {}.", (someone.english, someone.german[NOM]), clause, is_so.statement())


def infinitive_sentence(rng: Random) -> Pair:
    """Anna forgot to turn off the lamp. It is important to sleep. Paul went to the city to buy a hat."""
    form, who = rng.random(), an_actor(rng)
    verb, pattern = pick(rng, _DOING), ("{} {}.", "{}, {}.")
    if form < 0.55:
        tried, tense = pick(rng, _TRIED)
        main = Clause(who, Predicate(VERB[tried]), tense)
    elif form < 0.75:
        main = Clause(IT, _feeling(pick(rng, _JUDGED)))
    else:
        verb, pattern = pick(rng, _GOING_FOR), ("{} {}.", "{}, um {}.")
        main = Clause(who, predicate(rng, pick(rng, _GOING), who), pick(rng, (PAST, PAST, FUTURE, "want to")))
    done = Clause(main.subject, predicate(rng, verb, main.subject))
    return say(*pattern, main.statement(), done.infinitive())
