"""Envoy: a layer of its runtime (RTDS) in a file, which it watches itself and reads at every start."""

from __future__ import annotations

import json

from migrate.weights.target import PARTS, Target, parts

_SETUP = """\
# In the bootstrap. FILE is watched: nothing is run after a change, and unlike the admin's /runtime_modify it survives a
# restart. Its name ends in .json. The hash policy decides, so a session stays together, and a larger share keeps
# everybody whom a smaller one had; requests without the header are drawn one by one.
layered_runtime:
  layers:
    - name: migrate
      rtds_layer:
        name: migrate
        rtds_config:
          resource_api_version: V3
          path_config_source:
            path: /etc/envoy/migrate/runtime.json    # FILE
            watched_directory: {path: /etc/envoy/migrate}    # its folder
# The route, in the http_connection_manager:
#   - match: {prefix: /}
#     route:
#       timeout: 0s
#       hash_policy: [{header: {header_name: x-session-id}}]
#       weighted_clusters:
#         use_hash_policy: true
#         runtime_key_prefix: migrate.canary
#         clusters: [{name: candidate, weight: 0}, {name: baseline, weight: 10000}]
"""


def text(share: float, _: str = "") -> str:
    """The whole file: a discovery response, as JSON. Both weights are in it, so that their sum stays."""
    place = parts(share)
    runtime = {
        "@type": "type.googleapis.com/envoy.service.runtime.v3.Runtime",
        "name": "migrate",
        "layer": {"migrate.canary.candidate": place, "migrate.canary.baseline": PARTS - place},
    }
    return json.dumps({"version_info": str(place), "resources": [runtime]}, indent=2) + "\n"


ENVOY = Target(text=text, setup=_SETUP)
