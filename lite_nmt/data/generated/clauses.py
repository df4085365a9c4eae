"""Word order: one clause, said as a statement, a question, a subordinate clause or an infinitive.

German order: subject and pronouns, time, objects, nicht, place and other complements, closing verb.
English order: subject, verb, objects and complements, place, time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lite_nmt.data.generated.phrases import NOM, NounPhrase
from lite_nmt.data.generated.verbs import PRESENT, EnglishVerb, english_verb, german_verb, imperative, zu_infinitive
from lite_nmt.data.generated.lexicon import Verb

Pair = tuple[str, str]  # English, German


@dataclass(frozen=True)
class Adverbial:
    """An adverbial of time; an inner one stands before the English verb (often) and never in front."""

    english: str
    german: str
    inner: bool = False


@dataclass(frozen=True)
class Predicate:
    """A verb with its complements, already in their cases.

    pronoun, objects and complement fill the three German places: before the time, before nicht, after it.
    nicht is False where kein says it. used names the nouns inside.
    """

    verb: Verb
    english: str = ""
    pronoun: str = ""
    objects: str = ""
    complement: str = ""
    negated: bool = False
    nicht: bool = False
    used: tuple[str, ...] = ()


@dataclass(frozen=True)
class Clause:
    """Who, what, when."""

    subject: NounPhrase
    predicate: Predicate
    tense: str = PRESENT
    time: Adverbial | None = None

    def without_time(self) -> Clause:
        """The same clause with its time left open, to ask for it."""
        return replace(self, time=None)


def join(*parts: str) -> str:
    """The parts that are there, with a space between."""
    return " ".join(part for part in parts if part)


def _english_verb(clause: Clause) -> EnglishVerb:
    return english_verb(clause.predicate.verb, clause.tense, clause.subject.agreement)


def _inner(clause: Clause) -> str:
    return clause.time.english if clause.time and clause.time.inner else ""


def _outer(clause: Clause) -> str:
    return clause.time.english if clause.time and not clause.time.inner else ""


def _negated(auxiliary: str) -> str:
    return "cannot" if auxiliary == "can" else f"{auxiliary} not"


def english_statement(clause: Clause, front: bool = False) -> str:
    """Anna does not read the book today. In front: Today, Anna does not read the book."""
    verb = _english_verb(clause)
    if clause.predicate.negated:
        middle = join(_negated(verb.auxiliary), _inner(clause), verb.rest)
    elif verb.rest:
        middle = join(_inner(clause), verb.plain)
    else:
        middle = join(verb.plain, _inner(clause))
    said = join(clause.subject.english, middle, clause.predicate.english)
    return f"{_outer(clause)}, {said}" if front else join(said, _outer(clause))


def english_question(clause: Clause, asked: str = "") -> str:
    """Does Anna read the book today? Asked: When does Anna read the book?"""
    verb = _english_verb(clause)
    negation = "not" if clause.predicate.negated else ""
    middle = join(verb.auxiliary, clause.subject.english, negation, _inner(clause), verb.rest)
    return join(asked, middle, clause.predicate.english, _outer(clause))


def english_infinitive(clause: Clause) -> str:
    """To read the book today."""
    return join("to", clause.predicate.verb.english, clause.predicate.english, _outer(clause))


def english_imperative(clause: Clause) -> str:
    """Do not read the book today."""
    negation = "do not" if clause.predicate.negated else ""
    return join(negation, clause.predicate.verb.english, clause.predicate.english, _outer(clause))


def _german_middle(clause: Clause, front: bool = False) -> str:
    predicate = clause.predicate
    time = clause.time.german if clause.time and not front else ""
    nicht = "nicht" if predicate.nicht else ""
    return join(predicate.pronoun, time, predicate.objects, nicht, predicate.complement)


def german_statement(clause: Clause, front: bool = False) -> str:
    """Verb second: Anna ruft Paul heute an. In front: Heute ruft Anna Paul an."""
    verb = german_verb(clause.predicate.verb, clause.tense, clause.subject.agreement)
    subject, time = clause.subject.german[NOM], clause.time.german if clause.time else ""
    opening = (time, verb.finite, subject) if front else (subject, verb.finite)
    return join(*opening, _german_middle(clause, front), verb.closing)


def german_question(clause: Clause, asked: str = "") -> str:
    """Verb first, or after what is asked: Wann ruft Anna Paul an? Also the order after a fronted clause."""
    verb = german_verb(clause.predicate.verb, clause.tense, clause.subject.agreement)
    return join(asked, verb.finite, clause.subject.german[NOM], _german_middle(clause), verb.closing)


def german_final(clause: Clause) -> str:
    """Verb last, after weil or dass: Anna Paul heute anruft."""
    verb = german_verb(clause.predicate.verb, clause.tense, clause.subject.agreement)
    return join(clause.subject.german[NOM], _german_middle(clause), verb.final)


def german_infinitive(clause: Clause) -> str:
    """With zu: Paul heute anzurufen."""
    return join(_german_middle(clause), zu_infinitive(clause.predicate.verb))


def german_imperative(clause: Clause) -> str:
    """To one friend: ruf Paul heute an."""
    verb = clause.predicate.verb
    return join(imperative(verb), _german_middle(clause), verb.prefix)
