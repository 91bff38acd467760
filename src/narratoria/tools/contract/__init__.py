"""The contract around a call (004): what must hold before it, and what follows after it.

`preconditions` has the five kinds and `validate`; `effects` has the four kinds, `apply_effects` and
`rollback_effects`; `conditions` says how a value is compared with what is expected of it; `templates` takes
values from the call; `manifest` reads all of it from the data beside an executable.
"""

from narratoria.tools.contract.contract_data import (
    EFFECTS_SCHEMA,
    PRECONDITIONS_SCHEMA,
    effects_from_data,
    preconditions_from_data,
)
from narratoria.tools.contract.effect_kinds import (
    CascadeEffect,
    MemoryEffect,
    NotificationEffect,
    StateChangeEffect,
)
from narratoria.tools.contract.effects import (
    AppliedEffect,
    Compensation,
    Effect,
    EffectFailed,
    apply_effects,
    rollback_effects,
)
from narratoria.tools.contract.expectations import matches
from narratoria.tools.contract.precondition_kinds import (
    CustomPrecondition,
    DependencyPrecondition,
    PermissionPrecondition,
    ResourcePrecondition,
    StatePrecondition,
)
from narratoria.tools.contract.preconditions import (
    Precondition,
    PreconditionCheck,
    PreconditionResult,
    validate,
)

__all__ = [
    "EFFECTS_SCHEMA",
    "PRECONDITIONS_SCHEMA",
    "AppliedEffect",
    "CascadeEffect",
    "Compensation",
    "CustomPrecondition",
    "DependencyPrecondition",
    "Effect",
    "EffectFailed",
    "MemoryEffect",
    "NotificationEffect",
    "PermissionPrecondition",
    "Precondition",
    "PreconditionCheck",
    "PreconditionResult",
    "ResourcePrecondition",
    "StateChangeEffect",
    "StatePrecondition",
    "apply_effects",
    "effects_from_data",
    "matches",
    "preconditions_from_data",
    "rollback_effects",
    "validate",
]
