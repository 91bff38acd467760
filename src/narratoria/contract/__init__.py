"""The contract around a call (004): what must hold before it, and what follows after it.

`preconditions` has the five kinds and `validate`; `effects` has the four kinds, `apply_effects` and
`rollback_effects`; `conditions` says how a value is compared with what is expected of it; `templates` takes
values from the call; `manifest` reads all of it from the data beside an executable.
"""

from narratoria.contract.effects import (
    AppliedEffect,
    CascadeEffect,
    Compensation,
    Effect,
    EffectFailed,
    MemoryEffect,
    NotificationEffect,
    StateChangeEffect,
    apply_effects,
    rollback_effects,
)
from narratoria.contract.expectations import matches
from narratoria.contract.manifest import (
    EFFECTS_SCHEMA,
    PRECONDITIONS_SCHEMA,
    effects_from_data,
    preconditions_from_data,
)
from narratoria.contract.preconditions import (
    CustomPrecondition,
    DependencyPrecondition,
    PermissionPrecondition,
    Precondition,
    PreconditionCheck,
    PreconditionResult,
    ResourcePrecondition,
    StatePrecondition,
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
