"""Write a software bill of materials beside a wheel: CycloneDX 1.6 as JSON.

    VENV/bin/python scripts/make_sbom.py dist/narratoria-….whl

Run it in an environment that has the wheel and nothing else: what is installed there is what a user gets. The packages
of the extras are listed as optional, in the versions of constraints.txt.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import uuid
import zipfile
from email.message import Message
from email.parser import HeaderParser
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

TOOLS = {"pip", "setuptools", "wheel"}  # of the environment itself
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
EXTRA = re.compile(r"""extra\s*==\s*['"]""")


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def purl(name: str, version: str) -> str:
    return f"pkg:pypi/{normal(name)}@{version}"


def wanted(requirements: list[str], *, optional: bool) -> set[str]:
    """Return the names of the packages that a wheel needs, or those of its extras."""
    found = {NAME.match(one)[0]: bool(EXTRA.search(one)) for one in requirements if NAME.match(one)}  # type: ignore[index]
    return {normal(name) for name, extra in found.items() if extra == optional}


def licence(metadata: Any) -> list[dict[str, Any]]:
    if expression := metadata.get("License-Expression"):
        return [{"expression": expression}]
    named = [
        one.rpartition(" :: ")[2]
        for one in metadata.get_all("Classifier") or []
        if one.startswith("License :: ")
    ]
    return [{"license": {"name": one}} for one in named]


def component(name: str, version: str, metadata: Any = None, *, scope: str = "required") -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl(name, version),
        "name": normal(name),
        "version": version,
        "purl": purl(name, version),
        "scope": scope,
    }
    licences = [] if metadata is None else licence(metadata)
    return found | ({"licenses": licences} if licences else {})


def bill(wheel: Path, installed: list[Distribution], pinned: dict[str, str]) -> dict[str, Any]:
    with zipfile.ZipFile(wheel) as archive:
        (place,) = (one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
        about: Message = HeaderParser().parsestr(archive.read(place).decode())
    requirements = about.get_all("Requires-Dist") or []
    own = purl(about["Name"], about["Version"])
    there = {
        normal(one.name): one for one in installed if normal(one.name) not in TOOLS | {normal(about["Name"])}
    }
    optional = {
        name: pinned[name] for name in wanted(requirements, optional=True) - there.keys() if name in pinned
    }
    refs = {name: purl(name, one.version) for name, one in there.items()}
    needs = {own: wanted(requirements, optional=False)}
    needs |= {refs[name]: wanted(list(one.requires or []), optional=False) for name, one in there.items()}
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, digest)}",  # the same wheel gives the same bill
        "version": 1,
        "metadata": {
            "component": {
                **component(about["Name"], about["Version"], about),
                "type": "application",
                "hashes": [{"alg": "SHA-256", "content": digest}],
            }
        },
        "components": [
            *(component(name, one.version, one.metadata) for name, one in sorted(there.items())),
            *(component(name, version, scope="optional") for name, version in sorted(optional.items())),
        ],
        "dependencies": [
            {"ref": ref, "dependsOn": sorted(refs[name] for name in names if name in refs)}
            for ref, names in needs.items()
        ],
    }


def main() -> None:
    wheel = Path(sys.argv[1])
    lines = Path(__file__).parents[1].joinpath("constraints.txt").read_text().splitlines()
    pinned = {
        normal(name): version for name, _, version in (line.partition("==") for line in lines) if version
    }
    target = wheel.with_suffix(".cdx.json")
    target.write_text(json.dumps(bill(wheel, list(distributions()), pinned), indent=1) + "\n")
    print(target)


if __name__ == "__main__":
    main()
