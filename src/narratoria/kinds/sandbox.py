"""The profiles of the sandbox, as data, and the one that a tool gets.

A tool gets the stricter one of two: that of the place it lies in, and that of its manifest. What a person says with
`--sandbox`, or in `NARRATORIA_SANDBOX`, takes the place of both. A manifest can therefore only give rights up.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

from narratoria.errors import ToolValidationError

ProfileName = Literal["trusted", "story", "strict"]
NAMES: Final[tuple[ProfileName, ...]] = get_args(ProfileName)
"""From the most to the fewest rights."""
VARIABLE: Final = "NARRATORIA_SANDBOX"
NETWORK: Final = "network"
"""The permission by which a tool of the profile `story` asks for the network."""
_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Profile:
    """The rights of a tool. Sizes are in bytes, times in seconds."""

    name: ProfileName
    network: Literal["yes", "asked", "never"] = "yes"
    """`asked`: if its manifest has the permission `network`."""
    memory: int = 0
    """Cap on the data of one process, and where a cgroup allows it, of all together; 0 is no cap, as below."""
    cpu: int = 0
    processes: int = 0
    file_size: int = 0
    open_files: int = 0
    scratch: int = 0
    """Cap on its scratch folder."""
    refuses: bool = False
    """A call is refused where the system lacks one of the walls; otherwise that is reported."""

    @property
    def confines(self) -> bool:
        """True for a profile with walls."""
        return self.name != "trusted"


PROFILES: Final[dict[str, Profile]] = {
    "trusted": Profile("trusted"),
    "story": Profile(
        "story",
        network="asked",
        memory=4096 * _MIB,
        cpu=300,
        processes=128,
        file_size=512 * _MIB,
        open_files=1024,
        scratch=2048 * _MIB,
    ),
    "strict": Profile(
        "strict",
        network="never",
        memory=1024 * _MIB,
        cpu=60,
        processes=16,
        file_size=64 * _MIB,
        open_files=256,
        scratch=256 * _MIB,
        refuses=True,
    ),
}


@dataclass(frozen=True, slots=True)
class Choice:
    """A person's word on the sandbox: the profile of every tool, and if a missing wall may be run without."""

    profile: ProfileName | None = None
    despite_missing: bool = False


_chosen: list[Choice] = []


def choose(profile: str | None, *, despite_missing: bool = False) -> Callable[[], None]:
    """Give every tool of this process one profile, until the returned function is called. `--sandbox` uses this."""
    chosen = Choice(None if profile is None else _checked(profile, "--sandbox"), despite_missing)
    _chosen.append(chosen)

    def take_back() -> None:
        _chosen[:] = [one for one in _chosen if one is not chosen]

    return take_back


def chosen_profile() -> ProfileName | None:
    """Return the profile a person chose for every tool; None if nobody did."""
    for one in reversed(_chosen):
        if one.profile is not None:
            return one.profile
    standing = os.environ.get(VARIABLE)
    return _checked(standing, VARIABLE) if standing else None


def runs_despite_missing_walls() -> bool:
    """Tell if a person wants tools run that lack a wall of their profile."""
    return any(one.despite_missing for one in _chosen)


def profile_of(own: ProfileName) -> Profile:
    """Return the profile of a tool whose place and manifest give it `own`."""
    return PROFILES[(chosen_profile() or own) if _chosen or VARIABLE in os.environ else own]


def _checked(name: str, where: str) -> ProfileName:
    for known in NAMES:
        if name == known:
            return known
    raise ToolValidationError(f"{where}: there is no profile {name!r}; known: {', '.join(NAMES)}")


def stricter(*names: ProfileName | None) -> ProfileName:
    """Return the profile with the fewest rights; without any, `trusted`."""
    return max((name for name in names if name is not None), key=NAMES.index, default="trusted")


def profile_by_place(path: Path) -> ProfileName:
    """Return the profile of a tool by its place: one in the folder of a story that is not shipped with us gets
    `story`.
    """
    return "trusted" if story_around(path) is None else "story"


def story_around(path: Path) -> Path | None:
    """Return the folder of the story that a file lies in, or the link to it; None for a story that we ship."""
    for spelled in (path.absolute(), path.resolve()):
        root = next((one for one in spelled.parents if (one / "story.toml").is_file()), None)
        if root is not None and not root.resolve().is_relative_to(_shipped()):
            return root.resolve()
    return None


def _shipped() -> Path:
    """The folder of the shipped stories: in a wheel inside the package, in a checkout beside `src`."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "stories"
    return inside if inside.is_dir() else package.parents[1] / "stories"
