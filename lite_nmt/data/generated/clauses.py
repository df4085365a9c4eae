"""Word order: a clause in both languages as statement, question, subordinate clause, infinitive, request.

German: subject and pronouns, time, objects, nicht, place and other complements, closing verb.
English: subject, verb, objects and complements, place, time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lite_nmt.data.generated.lexicon import Verb
from lite_nmt.data.generated.phrases import NOM, NounPhrase, Pair, join
from lite_nmt.data.generated.verbs import PRESENT, english_verb, german_verb, imperative, zu_infinitive


@dataclass(frozen=True)
class Adverbial:
    """An adverbial of time; an inner one stands before the English verb (often)."""

    english: str
    german: str
    inner: bool = False


@dataclass(frozen=True)
class Predicate:
    """A verb with its complements, already in their cases.

    pronoun, objects and complement fill the three German places: before the time, before nicht, after it.
    kein: an object already says the "not" that the English verb carries.
    """

    verb: Verb
    english: str = ""
    pronoun: str = ""
    objects: str = ""
    complement: str = ""
    negated: bool = False
    kein: bool = False


@dataclass(frozen=True)
class Clause:
    """Who does what, in which tense and when."""

    subject: NounPhrase
    predicate: Predicate
    tense: str = PRESENT
    time: Adverbial | None = None

    def may_front(self) -> bool:
        """Whether the time can open the sentence: not often, gerade, gern."""
        time = self.time
        return time is not None and not time.inner and time.german not in ("gerade", "gern")

    def without_time(self) -> Clause:
        """The same clause with its time left open."""
        return replace(self, time=None)

    def _english_time(self, inner: bool) -> str:
        return self.time.english if self.time and self.time.inner == inner else ""

    def _english_statement(self, front: bool = False) -> str:
        verb = english_verb(self.predicate.verb, self.tense, self.subject.agreement)
        often, when = self._english_time(inner=True), self._english_time(inner=False)
        if self.predicate.negated:
            negation = "cannot" if verb.auxiliary == "can" else f"{verb.auxiliary} not"
            said = join(negation, often, verb.rest)
        else:
            said = join(often, verb.plain)
        said = join(self.subject.english, said, self.predicate.english)
        return f"{when}, {said}" if front else join(said, when)

    def _english_question(self, asked: str) -> str:
        verb = english_verb(self.predicate.verb, self.tense, self.subject.agreement)
        often, when = self._english_time(inner=True), self._english_time(inner=False)
        negation = "not" if self.predicate.negated else ""
        middle = join(verb.auxiliary, self.subject.english, negation, often, verb.rest)
        return join(asked, middle, self.predicate.english, when)

    def _english_base(self) -> str:
        what = self.predicate
        return join(what.verb.english, what.english, self._english_time(inner=False))

    def _german_middle(self, front: bool = False) -> str:
        what = self.predicate
        time = self.time.german if self.time and not front else ""
        nicht = "nicht" if what.negated and not what.kein else ""
        return join(what.pronoun, time, what.objects, nicht, what.complement)

    def _german_inverted(self, front: str = "", fronted_time: bool = False) -> str:
        verb = german_verb(self.predicate.verb, self.tense, self.subject.agreement)
        middle = self._german_middle(fronted_time)
        return join(front, verb.finite, self.subject.german[NOM], middle, verb.closing)

    def statement(self) -> Pair:
        """Verb second: Anna ruft Paul heute an."""
        verb = german_verb(self.predicate.verb, self.tense, self.subject.agreement)
        german = join(self.subject.german[NOM], verb.finite, self._german_middle(), verb.closing)
        return self._english_statement(), german

    def fronted(self) -> Pair:
        """The time first, which inverts the German clause: Heute ruft Anna Paul an."""
        time = self.time.german if self.time else ""
        return self._english_statement(front=True), self._german_inverted(time, fronted_time=True)

    def after_clause(self) -> Pair:
        """What follows a subordinate clause: Wenn es regnet, ruft Anna Paul an."""
        return self._english_statement(), self._german_inverted()

    def question(self, asked: Pair = ("", "")) -> Pair:
        """Verb first, or after what is asked: Wann ruft Anna Paul an?"""
        return self._english_question(asked[0]), self._german_inverted(asked[1])

    def subordinate(self) -> Pair:
        """Verb last, after weil or dass: Anna Paul heute anruft."""
        verb = german_verb(self.predicate.verb, self.tense, self.subject.agreement)
        german = join(self.subject.german[NOM], self._german_middle(), verb.final)
        return self._english_statement(), german

    def infinitive(self) -> Pair:
        """To call Paul today, Paul heute anzurufen."""
        return f"to {self._english_base()}", join(self._german_middle(), zu_infinitive(self.predicate.verb))

    def request(self) -> Pair:
        """To one friend: call Paul today, ruf heute Paul an."""
        verb = self.predicate.verb
        english = join("do not" if self.predicate.negated else "", self._english_base())
        return english, join(imperative(verb), self._german_middle(), verb.prefix)


def say(english: str, german: str, *parts: Pair) -> Pair:
    """Put the parts into a pattern of each language: "{} because {}.", "{}, weil {}."."""
    return english.format(*(part[0] for part in parts)), german.format(*(part[1] for part in parts))
