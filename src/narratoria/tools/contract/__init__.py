"""The contract around a call: its preconditions and its effects.

`preconditions` and `precondition_kinds` have the kinds and `validate`; `effects` and `effect_kinds` have the
kinds, `apply_effects` and `rollback_effects`; `conditions` and `expectations` compare values; `effect_values`
takes values from the call; `contract_data` reads all of it from a manifest.
"""
# 004.

from narratoria.tools.contract.contract_data import (
    effects_from_data,
    effects_schema,
    preconditions_from_data,
    preconditions_schema,
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
    take_back,
    undisturbed,
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
    "effects_schema",
    "matches",
    "preconditions_from_data",
    "preconditions_schema",
    "rollback_effects",
    "take_back",
    "undisturbed",
    "validate",
]
