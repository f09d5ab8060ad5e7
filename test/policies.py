"""Reads SROS 2 policy files, by the rules of their schema (policy.xsd of sros2, version 0.2.0)."""

import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from pathlib import Path

# Element -> the element inside it, and the two things a rule may speak of.
RULES = {"topics": ("topic", {"publish", "subscribe"}), "services": ("service", {"request", "reply"})}
QUALIFIERS = {"ALLOW", "DENY"}


@dataclass
class Policy:
    """What one node may do: names in full."""

    enclave: str
    node: str
    # publish, subscribe, reply, request -> names.
    allowed: dict[str, set[str]] = field(default_factory=dict)


def read_policy(file: Path) -> Policy:
    """The only profile of a file.

    Raises:
        AssertionError: where the file breaks the schema.
    """
    root = ET.parse(file).getroot()  # noqa: S314 - a file of ours
    assert (root.tag, root.attrib) == ("policy", {"version": "0.2.0"})
    (enclaves,) = root
    (enclave,) = enclaves
    (profiles,) = enclave
    (profile,) = profiles
    assert [enclaves.tag, enclave.tag, profiles.tag, profile.tag] == ["enclaves", "enclave", "profiles", "profile"]
    assert set(enclave.attrib) == {"path"}
    assert set(profile.attrib) == {"ns", "node"}
    space = profile.attrib["ns"].rstrip("/")
    policy = Policy(enclave.attrib["path"], f"{space}/{profile.attrib['node']}")
    for rule in profile:
        child, actions = RULES[rule.tag]
        assert rule.attrib
        assert set(rule.attrib) <= actions
        assert set(rule.attrib.values()) <= QUALIFIERS
        assert [each.tag for each in rule] == [child] * len(rule)
        assert len(rule)
        names = [str(each.text) for each in rule]
        assert names == sorted(set(names)), "in order, and each once"
        for action in rule.attrib:
            assert action not in policy.allowed, "one list for each action"
            policy.allowed[action] = {name.replace("~", policy.node, 1) for name in names}
    return policy
