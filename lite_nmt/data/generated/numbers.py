"""Numbers, dates, clock times, prices and times of day, each as an (English, German) pair."""

from __future__ import annotations

from random import Random

from lite_nmt.data.generated.clauses import Adverbial
from lite_nmt.data.generated.draw import between, chance, pick
from lite_nmt.data.generated.phrases import Pair
from lite_nmt.data.generated.verbs import FUTURE, LIKING, PAST, PAST_MODALS, PRESENT, PROGRESSIVE

_UNITS = (
    *("one eins", "two zwei", "three drei", "four vier", "five fünf", "six sechs", "seven sieben"),
    *("eight acht", "nine neun", "ten zehn", "eleven elf", "twelve zwölf", "thirteen dreizehn"),
    *("fourteen vierzehn", "fifteen fünfzehn", "sixteen sechzehn", "seventeen siebzehn"),
    *("eighteen achtzehn", "nineteen neunzehn"),
)
_TENS = (
    *("twenty zwanzig", "thirty dreißig", "forty vierzig", "fifty fünfzig", "sixty sechzig"),
    *("seventy siebzig", "eighty achtzig", "ninety neunzig"),
)
_MONTHS = (
    *("January Januar", "February Februar", "March März", "April April", "May Mai", "June Juni"),
    *("July Juli", "August August", "September September", "October Oktober", "November November"),
    "December Dezember",
)
_DAYS_IN = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_WEEKDAYS = (
    *("Monday Montag", "Tuesday Dienstag", "Wednesday Mittwoch", "Thursday Donnerstag"),
    *("Friday Freitag", "Saturday Samstag", "Sunday Sonntag"),
)
_SPANS = ("days Tagen", "weeks Wochen", "months Monaten", "years Jahren")
_YESTERDAYS = (
    ("yesterday", "gestern"),
    ("yesterday evening", "gestern Abend"),
    ("last week", "letzte Woche"),
    ("last year", "letztes Jahr"),
)
_TOMORROWS = (
    ("tomorrow", "morgen"),
    ("tomorrow evening", "morgen Abend"),
    ("today", "heute"),
    ("next week", "nächste Woche"),
    ("next year", "nächstes Jahr"),
)
_NOWS = (("now", "jetzt"), ("today", "heute"), ("tomorrow", "morgen"))
_HABITS = (("every day", "jeden Tag"), ("every evening", "jeden Abend"), ("every week", "jede Woche"))
_OFTEN = (("often", "oft"), ("always", "immer"), ("never", "nie"), ("usually", "normalerweise"))


def _pair(row: str) -> Pair:
    english, german = row.split()
    return english, german


def number_words(number: int) -> Pair:
    """1 to 100 in words: twenty-seven, siebenundzwanzig."""
    if number == 100:
        return "one hundred", "hundert"
    if number < 20:
        return _pair(_UNITS[number - 1])
    tens, ones = _pair(_TENS[number // 10 - 2]), number % 10
    if not ones:
        return tens
    english, german = _pair(_UNITS[ones - 1])
    return f"{tens[0]}-{english}", f"{'ein' if ones == 1 else german}und{tens[1]}"


def small_number(rng: Random) -> Pair:
    """A number from two to twelve in words."""
    return number_words(between(rng, 2, 12))


def any_number(rng: Random) -> Pair:
    """A number from two to a hundred in words."""
    return number_words(between(rng, 2, 100))


def past_year(rng: Random) -> str:
    """A year from 1950 to 2024."""
    return str(between(rng, 1950, 2024))


def day_of_month(rng: Random) -> Pair:
    """March 3, 3. März."""
    month = between(rng, 0, 11)
    day = between(rng, 1, _DAYS_IN[month])
    english, german = _pair(_MONTHS[month])
    return f"{english} {day}", f"{day}. {german}"


def date(rng: Random, latest: int = 2030) -> Pair:
    """March 3, 2021 and 3. März 2021, from 1950 to the latest year."""
    english, german = day_of_month(rng)
    year = between(rng, 1950, latest)
    return f"{english}, {year}", f"{german} {year}"


def spoken_clock(rng: Random) -> Pair:
    """Half past three, halb vier; a quarter to nine, Viertel vor neun; five o'clock, fünf Uhr."""
    hour = between(rng, 1, 12)
    english, german = number_words(hour)
    form = between(rng, 0, 3)
    if form == 0:
        return f"{english} o'clock", f"{'ein' if hour == 1 else german} Uhr"
    if form == 1:
        return f"half past {english}", f"halb {number_words(hour % 12 + 1)[1]}"
    side, german_side = ("past", "nach") if form == 2 else ("to", "vor")
    return f"a quarter {side} {english}", f"Viertel {german_side} {german}"


def digital_clock(rng: Random) -> Pair:
    """3:15 pm, 15:15 Uhr: every five minutes from six in the morning to eleven at night."""
    hour, minute = between(rng, 6, 22), between(rng, 0, 11) * 5
    half = "am" if hour < 12 else "pm"
    return f"{(hour - 1) % 12 + 1}:{minute:02} {half}", f"{hour}:{minute:02} Uhr"


def clock(rng: Random) -> Pair:
    """At a time of day."""
    english, german = spoken_clock(rng) if chance(rng, 0.6) else digital_clock(rng)
    return f"at {english}", f"um {german}"


def price(rng: Random) -> Pair:
    """€3.50, 3,50 €; $1,200, 1.200 $; €45, 45 €."""
    form = between(rng, 0, 2)
    if form == 0:
        euros, cents = between(rng, 1, 60), between(rng, 1, 19) * 5
        return f"€{euros}.{cents:02}", f"{euros},{cents:02} €"
    if form == 1:
        thousands, hundreds = between(rng, 1, 9), between(rng, 0, 9) * 100
        sign = pick(rng, ("$", "€"))
        return f"{sign}{thousands},{hundreds:03}", f"{thousands}.{hundreds:03} {sign}"
    sign, amount = pick(rng, ("$", "€")), between(rng, 2, 99)
    return f"{sign}{amount}", f"{amount} {sign}"


def _day(rng: Random, past: bool) -> Pair:
    form = rng.random()
    if form < 0.25:
        english, german = _pair(pick(rng, _WEEKDAYS))
        return f"on {english}", f"am {german}"
    if form < 0.35:
        english, german = _pair(pick(rng, _MONTHS))
        return f"in {english}", f"im {german}"
    if form < 0.47:
        (english, german), (span, german_span) = small_number(rng), _pair(pick(rng, _SPANS))
        if past:
            return f"{english} {span} ago", f"vor {german} {german_span}"
        return f"in {english} {span}", f"in {german} {german_span}"
    return pick(rng, _YESTERDAYS if past else _TOMORROWS)


def _dated(rng: Random) -> Pair:
    if chance(rng, 0.4):
        year = past_year(rng)
        return f"in {year}", year
    english, german = date(rng, 2024) if chance(rng, 0.5) else day_of_month(rng)
    return f"on {english}", f"am {german}"


def time_for(rng: Random, tense: str, dates: bool) -> Adverbial | None:
    """An adverbial that goes with a tense, or none; progressive, habit and liking always have theirs.

    dates: also calendar dates, whose English comma would be hard to read inside a longer sentence.
    """
    if tense == PROGRESSIVE:
        return Adverbial("right now", "gerade")
    if tense == LIKING:
        return Adverbial("", "gern")
    if tense == PRESENT:
        if chance(rng, 0.5):
            return Adverbial(*pick(rng, _OFTEN), inner=True)
        if chance(rng, 0.25):
            weekday = _pair(pick(rng, _WEEKDAYS))
            return Adverbial(f"every {weekday[0]}", f"jeden {weekday[1]}")
        return Adverbial(*pick(rng, _HABITS))
    if chance(rng, 0.35):
        return None
    past = tense == PAST or tense in PAST_MODALS
    if past and dates and chance(rng, 0.08):
        return Adverbial(*_dated(rng))
    day = _day(rng, past) if past or tense == FUTURE else pick(rng, _NOWS)
    if day[0] in ("yesterday", "tomorrow", "today") and chance(rng, 0.3):
        at = clock(rng)
        return Adverbial(f"{day[0]} {at[0]}", f"{day[1]} {at[1]}")
    return Adverbial(*day)
