"""The past of a session, as its game knows it: the facts, the turns that stand, the memories recalled for them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from narratoria.errors import JournalError
from narratoria.factcheck.patch_ledger import Ledger
from narratoria.lore.past_turns import Chronicle
from narratoria.play.recalls import Recalls
from narratoria.session import Record, Session
from narratoria.store.journal import Journal


def journal_of(session: Session) -> Journal | None:
    """Return the journal of a saved session."""
    journal = session.journal
    return journal if isinstance(journal, Journal) else None


class SessionPast:
    """The past of a session, read from the journal when it is first needed; from then on it follows the records."""

    def __init__(self, session: Session) -> None:
        self.chronicle = Chronicle()
        self.recalls = Recalls()
        self._session = session
        self._ledger: Ledger | None = None
        self._reading = asyncio.Lock()

    async def open(self) -> Ledger:
        """Return the ledger of facts and their patches; for a saved session, also those from before this game was
        opened.
        """
        async with self._reading:
            if self._ledger is None:
                ledger, session = Ledger(), self._session
                journal = journal_of(session)
                if journal is not None:
                    await self._read_back(journal, ledger)
                session.attach(ledger)
                session.attach(self.chronicle)
                session.attach(self.recalls)
                self._ledger = ledger
            return self._ledger

    async def _read_back(self, journal: Journal, ledger: Ledger) -> None:
        def take_in(records: Iterable[Record]) -> int:
            last = 0
            for record in records:
                ledger.push(record)
                self.chronicle.push(record)
                self.recalls.push(record)
                last = record.seq
            return last

        last, read = 0, 1
        while read and last < self._session.seq:  # something may be recorded while we read
            try:
                await journal.flush()
                read = await asyncio.to_thread(take_in, journal.store.read(self._session.id, last))
            except JournalError:  # the turn's end says what is wrong with the disk
                return
            last = max(last, read)
