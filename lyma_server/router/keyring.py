"""The ring of a provider's keys: whose turn it is. What is held against a key is in `standing`."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from lyma_server.router.standing import RingKey, Standing

Rotation: TypeAlias = Literal["on-failure", "every-call"]

_MOST_PINS = 1024


class KeyRing:
    """The keys of one (provider, model) in a ring with one pointer.

    A session stays at its own key, so that prompt caches keep working, and moves on when that key fails; a new session
    begins where the last answer came from. With `every-call` each pick moves the common pointer on instead.
    """

    def __init__(self, keys: tuple[RingKey, ...], rotation: Rotation = "on-failure") -> None:
        self._keys = keys
        self._places = {key.fingerprint: place for place, key in enumerate(keys)}
        self._rotation: Rotation = rotation
        self._pointer = 0
        self._pins: OrderedDict[str, int] = OrderedDict()

    def usable(
        self, session: str, standing: Callable[[RingKey], Standing], tried: Container[str] = ()
    ) -> tuple[RingKey, ...]:
        """The keys to try in this order: free ones in ring order from the session's own, then those whose learned account
        is cooling. Keys that are out, or whose fingerprint is in `tried`, are not among them. Changes nothing.
        """
        start = self._pins.get(session, self._pointer)
        ring = [key for key in (*self._keys[start:], *self._keys[:start]) if key.fingerprint not in tried]
        freedoms = [(key, standing(key).freedom) for key in ring]
        return tuple(key for wanted in ("free", "shared") for key, freedom in freedoms if freedom == wanted)

    def pick(self, session: str, standing: Callable[[RingKey], Standing], tried: Container[str] = ()) -> RingKey | None:
        """The key to ask with now, or None where none may be asked."""
        key = next(iter(self.usable(session, standing, tried)), None)
        if key is not None and self._rotation == "every-call":
            self._pointer = self._after(self._places[key.fingerprint])
        return key

    def answered(self, session: str, fingerprint: str) -> None:
        """The next ask, of this session or a new one, starts at the key that answered."""
        if self._rotation == "on-failure":
            self._pointer = self._places[fingerprint]
            self._pin(session, self._pointer)

    def failed(self, session: str, fingerprint: str) -> None:
        """Move on from this key; several calls that report the same key move on once."""
        if self._rotation == "every-call":
            return
        place = self._places[fingerprint]
        self._pin(session, self._after(place))
        if self._pointer == place:
            self._pointer = self._after(place)

    def _after(self, place: int) -> int:
        return (place + 1) % len(self._keys)

    def _pin(self, session: str, place: int) -> None:
        self._pins[session] = place
        self._pins.move_to_end(session)
        if len(self._pins) > _MOST_PINS:
            self._pins.popitem(last=False)
