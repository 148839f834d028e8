"""A brief made of the packages' own sentences: the drafter of a machine without a language model."""

from __future__ import annotations

import re
from collections.abc import Iterable

from examples.distributions import Distribution
from examples.plain_text import sentences

MADE_HOW = (
    "This is an extractive draft, made without a language model: every sentence about a package is its own, "
    "taken word for word from its metadata or README."
)
SENTENCES_EACH, FEWER_SENTENCES, MORE_SENTENCES = 3, 1, 6
WORDS_AT_LEAST = 4
ASKS_FOR_LESS = re.compile(
    r"\b(short(er)?|brief(er)?|concise|less|cut|trim|too long|too much)\b", re.IGNORECASE
)
ASKS_FOR_MORE = re.compile(r"\b(long(er)?|more|details?|deeper|expand|too short)\b", re.IGNORECASE)
# Sentences that tell how to install, report or contribute say little about what a package is for.
ASIDES = re.compile(
    r"https?://|\b(pip|conda|install|documentation|docs|tutorial|contribut\w*|changelog|mailing list|issues?"
    r"|security|sponsor\w*|thanks|release notes|for more|see (the|our|its)|get in touch)\b",
    re.IGNORECASE,
)
# Openings that lean on the sentence before: alone they may say something else.
LEANS = re.compile(
    r"(Unfortunately|However|But|And|Also|Therefore|Instead|Otherwise|It|This|These|They|He|She)\b"
)
COMMON_WORDS = frozenset(
    "about against also and are best brief can choose compare comparison competitive draft find for from "
    "have how into its less longer more our please say shorter should tell than that the their them they this use "
    "using want what when where which who why will with you your".split()
)


def extractive_brief(goal: str, findings: list[Distribution], feedback: list[str]) -> str:
    """The brief as plain text; what reviewers said guides its choice, the last of it its length."""
    wanted = _words([goal, *feedback])
    each = _sentences_each(feedback)
    parts = [f"Goal: {goal}", MADE_HOW]
    if feedback:
        parts.append(_asked(feedback))
    parts.append("At a glance\n" + "\n".join(_glance(found) for found in findings))
    parts.extend(_about(found, wanted, each) for found in findings)
    if len(findings) > 1:
        parts.append(_side_by_side(findings))
    return "\n\n".join(parts) + "\n"


def _sentences_each(feedback: list[str]) -> int:
    latest = feedback[-1] if feedback else ""
    if "too short" not in latest.lower() and ASKS_FOR_LESS.search(latest):
        return FEWER_SENTENCES
    return MORE_SENTENCES if ASKS_FOR_MORE.search(latest) else SENTENCES_EACH


def _asked(feedback: list[str]) -> str:
    quoted = "\n".join(f'- "{reason}"' for reason in feedback)
    return f"What reviewers asked for after earlier drafts\n{quoted}"


def _glance(found: Distribution) -> str:
    needs = ", ".join(found.requires) or "no other package"
    return f"- {found.name} {found.version}: licence {found.licence}; Python {found.python}; needs {needs}"


def _about(found: Distribution, wanted: frozenset[str], each: int) -> str:
    said = _best_sentences(found, wanted, each) or ["Its README says nothing more."]
    return "\n".join([f"{found.name}: {found.summary}", *said, f"Home page: {found.home_page}"])


def _best_sentences(found: Distribution, wanted: frozenset[str], most: int) -> list[str]:
    """The README's sentences that share most words with what is wanted, at most `most`, in its order."""
    candidates = [
        sentence
        for paragraph in found.readme
        for sentence in sentences(paragraph)
        if len(sentence.split()) >= WORDS_AT_LEAST
        and not sentence.endswith(":")
        and sentence.rstrip(".") != found.summary.rstrip(".")
    ]
    places = range(len(candidates))
    scores = [_score(candidates[place], wanted) - 2 * place / len(candidates) for place in places]
    best = sorted(places, key=lambda place: (-scores[place], place))[:most]
    return [candidates[place] for place in sorted(best)]


def _score(sentence: str, wanted: frozenset[str]) -> float:
    """Shared words count most, whole sentences before fragments; asides and torn-out sentences come last."""
    shared = len(_words([sentence]) & wanted)
    unfit = bool(ASIDES.search(sentence)) + bool(LEANS.match(sentence))
    return 2 * shared + sentence.endswith(".") + min(len(sentence.split()), 20) / 20 - 3 * unfit


def _side_by_side(findings: list[Distribution]) -> str:
    shared = set.intersection(*(set(found.requires) for found in findings))
    lines = [
        f"All of them need {', '.join(sorted(shared))}." if shared else "No package is needed by all of them."
    ]
    for found in findings:
        own = sorted(set(found.requires) - set().union(*(o.requires for o in findings if o is not found)))
        if own:
            lines.append(f"Only {found.name} needs {', '.join(own)}.")
    licences = {found.licence for found in findings}
    if len(licences) == 1:
        lines.append(f"All of them are under the licence {licences.pop()}.")
    else:
        lines.append("Their licences differ: " + "; ".join(f"{f.name} {f.licence}" for f in findings) + ".")
    return "Side by side\n" + "\n".join(lines)


def _words(texts: Iterable[str]) -> frozenset[str]:
    """The telling words, without the commonest endings, so that "tasks" meets "task"."""
    found = {word for text in texts for word in re.findall(r"[a-z][a-z0-9-]{2,}", text.lower())}
    return frozenset(re.sub(r"(?<=\w{3})(ing|ed|es|s)$", "", word) for word in found - COMMON_WORDS)
