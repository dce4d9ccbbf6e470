"""Kubernetes Gateway API: weights of an HTTPRoute, as a JSON patch (RFC 6902)."""

from __future__ import annotations

import json

from migrate.weights.target import PARTS, Target, parts

_SETUP = """\
# The HTTPRoute. Gateway API promises a share of requests, no more: whether a session stays together is the
# implementation's affair, and most draw each request by itself.
# After each change: --then 'kubectl patch httproute llm --type json --patch-file FILE'
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: llm}
spec:
  parentRefs: [{name: gateway}]
  rules:
    - backendRefs:    # both names are tested before a weight is written
        - {name: baseline, port: 8000, weight: 10000}
        - {name: candidate, port: 8000, weight: 0}
"""


def text(share: float, _: str = "") -> str:
    """The patch: of the first rule, whose backends are ``baseline`` and ``candidate`` in this order."""
    place = parts(share)
    refs = [("baseline", PARTS - place), ("candidate", place)]
    at = "/spec/rules/0/backendRefs"
    tests = [{"op": "test", "path": f"{at}/{n}/name", "value": name} for n, (name, _) in enumerate(refs)]
    weights = [
        {"op": "add", "path": f"{at}/{n}/weight", "value": weight} for n, (_, weight) in enumerate(refs)
    ]
    return json.dumps([*tests, *weights], indent=2) + "\n"


GATEWAY_API = Target(text=text, setup=_SETUP)
