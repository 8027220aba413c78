"""One key behaves as if every call on it took effect at one instant between being made and being answered (CHK-014).

This is promised for decisions of a single place: orders at the root of a configuration, the names of a broker,
invitations, the root of an epoch. It is not promised for the store or documents, which both halves of a split may write.

The search is that of Wing and Gong with Lowe's memory of states already tried, key by key. A call without an answer may
have taken effect at any later instant, or never (CHK-003); a call that was refused had no effect.
"""

from typing import Any, ClassVar, Final

from weft.checks.checker import Checker
from weft.checks.history import WITNESSES_MAX, Fact, Unknown, Violation

State = str | int | None
"""The value of a key; None: it has none."""
UNANSWERED: Final = object()
STEPS_MAX: Final = 2_000_000  # takes some seconds; a history that needs more cannot be judged


class Call:
    """A call or its answer, as an element of the linked list that is searched."""

    __slots__ = ("answer", "bit", "fact", "is_answer", "next", "operation", "previous", "result")

    def __init__(self, fact: Fact, operation: list[Any], *, is_answer: bool = False) -> None:
        self.fact = fact
        self.operation = operation
        self.is_answer = is_answer
        self.result: Any = UNANSWERED
        self.answer: Call | None = None
        self.bit = 0
        self.previous: Call | None = None
        self.next: Call | None = None


def outcome(state: State, operation: list[Any], result: Any) -> tuple[bool, State]:
    """Whether `operation` on a key that holds `state` may answer `result`, and what the key holds afterwards.

    `["get"]` answers the value; `["set", value]` always writes and answers nothing; `["swap", expected, value]` writes only
    over `expected`, and answers whether it did. None stands for no value: `["swap", None, who]` registers a name,
    `["swap", who, None]` frees it. `["claim", who]` writes only if the key has no value or `who`, and answers whether `who`
    has it now: a service may register again.
    """
    verb = operation[0]
    if verb == "get":
        return result is UNANSWERED or result == state, state
    if verb == "set":
        return result is UNANSWERED or result is None, operation[1]
    is_done = state in (None, operation[1]) if verb == "claim" else state == operation[1]
    fits = result is UNANSWERED or result == is_done
    return fits, operation[-1] if is_done else state


class Search:
    """Searches an order of the calls of one key that explains all answers."""

    def __init__(self, calls: list[Call]) -> None:
        self.head = Call(calls[0].fact, [])
        self.open = 0
        """How many answers have no place in the order yet."""
        at = self.head
        for number, each in enumerate(calls):
            each.bit = 1 << number
            self.open += each.is_answer
            each.previous, at.next = at, each
            at = each

    def explain(self) -> list[Fact] | None:
        """None if there is such an order, else the facts around the answer that no order explains.

        Raises `OverflowError` after `STEPS_MAX` steps.
        """
        state: State = None
        done, steps = 0, 0
        taken: list[tuple[Call, State]] = []
        tried: set[tuple[int, State]] = set()
        at = self.head.next
        while self.open:
            assert at is not None, "an answer that is not explained stands in the list"
            steps += 1
            if steps > STEPS_MAX:
                raise OverflowError
            if not at.is_answer:
                fits, then = outcome(state, at.operation, at.result)
                if fits and (done | at.bit, then) not in tried:
                    tried.add((done | at.bit, then))
                    taken.append((at, state))
                    state, done = then, done | at.bit
                    self._lift(at)
                    at = self.head.next
                else:
                    at = at.next
            elif taken:
                at, state = taken.pop()
                done ^= at.bit
                self._put_back(at)
                at = at.next
            else:
                return self._around(at)
        return None

    def _lift(self, call: Call) -> None:
        """Remove a call and its answer from the list."""
        _unlink(call)
        if call.answer is not None:
            self.open -= 1
            _unlink(call.answer)

    def _put_back(self, call: Call) -> None:
        if call.answer is not None:
            self.open += 1
            _relink(call.answer)
        _relink(call)

    def _around(self, answer: Call) -> list[Fact]:
        """The calls that were open when the unexplained answer came, and that answer."""
        calls: list[Fact] = []
        at = self.head.next
        while at is not None and at is not answer:
            calls.append(at.fact)
            at = at.next
        return [*calls[: WITNESSES_MAX - 1], answer.fact]


def _unlink(call: Call) -> None:
    assert call.previous is not None
    call.previous.next = call.next
    if call.next is not None:
        call.next.previous = call.previous


def _relink(call: Call) -> None:
    assert call.previous is not None
    call.previous.next = call
    if call.next is not None:
        call.next.previous = call


class Linearizable(Checker):
    """One order of the calls on a key explains all their answers, and each call takes effect before its answer."""

    rule = "linearizable"
    HEARS: ClassVar = {
        ("invoke", "call"): "note_call",
        ("ok", "call"): "note_answer",
        ("fail", "call"): "note_refusal",
    }

    def __init__(self) -> None:
        self.keys: dict[str, list[Call]] = {}
        self.waiting: dict[tuple[str, int], tuple[str, Call]] = {}
        self.refused: set[Call] = set()

    def note_call(self, fact: Fact) -> None:
        client, number, key, operation = fact.value
        call = Call(fact, operation)
        self.keys.setdefault(key, []).append(call)
        self.waiting[client, number] = (key, call)

    def note_answer(self, fact: Fact) -> None:
        client, number, result = fact.value
        if (client, number) not in self.waiting:
            self.broken(f"{client} hears an answer to its call {number}, which it never made", fact)
        key, call = self.waiting.pop((client, number))
        call.result = result
        call.answer = Call(fact, [], is_answer=True)
        self.keys[key].append(call.answer)

    def note_refusal(self, fact: Fact) -> None:
        """A refused call had no effect, so nothing has to explain it."""
        _, call = self.waiting.pop((fact.value[0], fact.value[1]))
        self.refused.add(call)

    def end(self) -> Violation | Unknown | None:
        for key, made in self.keys.items():
            calls = [call for call in made if call not in self.refused]
            try:
                stuck = Search(calls).explain() if calls else None
            except OverflowError:
                return Unknown(self.rule, f"the calls on {key} overlap too much")
            if stuck is not None:
                return Violation(self.rule, f"no order of the calls on {key} explains the last answer", tuple(stuck))
        return None
