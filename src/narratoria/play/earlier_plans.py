"""The plans a turn has made so far: their ids and the one that the next plan replaces."""

from __future__ import annotations

from collections.abc import Iterable

from narratoria.narrator.invocation import readable
from narratoria.run.plan import PlanDocument


class EarlierPlans:
    """What a turn knows of its plans. `problems` say why the last one was rejected; it ran where there are none."""

    def __init__(self) -> None:
        self.ids: set[str] = set()
        self.parent: PlanDocument | None = None
        self.parent_id: str | None = None
        self.problems: tuple[str, ...] = ()

    def recall(self, ids: Iterable[str], parent_id: str | None) -> None:
        """Take up what the records of an interrupted turn say of its plans."""
        self.ids.update(ids)
        self.parent_id = parent_id

    def own_id(self, wanted: str, attempt: int) -> str:
        """Return an id that no plan of this turn has: the wanted one, or one made of it.

        Records, undo and tools know a call by the id of its plan and its own.
        """
        wanted = readable(wanted)
        found, number = wanted, attempt
        while found in self.ids:
            found, number = f"{wanted}~{number}", number + 1
        self.ids.add(found)
        return found

    def replace(self, plan: PlanDocument | None, plan_id: str) -> None:
        """Make the next plan replace this one, which failed or was rejected."""
        # 000 §13.6: `parentPlanId`.
        self.parent, self.parent_id = plan, plan_id
