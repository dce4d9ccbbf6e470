"""LiteLLM: weights of the deployments in a file that its configuration includes; read at a start."""

from __future__ import annotations

from typing import Any

import yaml

from migrate.errors import ConfigError
from migrate.weights.target import PARTS, Target, parts

_SETUP = """\
# FILE: the deployments of both arms, once; their weights are written, all else stays (comments do not). Each request is drawn
# by itself: nothing keeps a session together. A deployment of weight 0 may still get what others fail on.
# config.yaml:  include: [migrate-models.yaml]
#               router_settings: {routing_strategy: simple-shuffle}
# LiteLLM reads it at its start only. After each change: --then 'systemctl restart litellm'
model_list:
  - model_name: harbor-7b
    litellm_params: {model: hosted_vllm/harbor-7b, api_base: http://10.0.0.5:8000/v1, weight: 10000}
    model_info: {arm: baseline}
  - model_name: harbor-7b
    litellm_params: {model: openai/harbor-7b-fp8, api_base: http://10.0.0.9:8000/v1, weight: 0}
    model_info: {arm: candidate}
"""


def text(share: float, before: str) -> str:
    """The file with the weights of all deployments that name an arm. Raises ConfigError where not both arms are there."""
    try:
        document = yaml.safe_load(before)
    except yaml.YAMLError as error:
        raise ConfigError(f"the LiteLLM file is no YAML: {str(error).splitlines()[0]}") from None
    place = parts(share)
    weights = {"baseline": PARTS - place, "candidate": place}
    found = [
        (arm, deployment) for deployment in _deployments(document) if (arm := _arm(deployment)) in weights
    ]
    if {arm for arm, _ in found} != set(weights):
        raise ConfigError(
            "the LiteLLM file has no deployments with model_info: {arm: baseline} and {arm: candidate}; "
            "see migrate weights --to litellm --setup"
        )
    for arm, deployment in found:
        deployment["litellm_params"] = {
            **(deployment.get("litellm_params") or {}),
            "weight": weights[str(arm)],
        }
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True)


def _deployments(document: Any) -> list[dict[str, Any]]:
    listed = document.get("model_list") if isinstance(document, dict) else None
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _arm(deployment: dict[str, Any]) -> object:
    told = deployment.get("model_info")
    found = told.get("arm") if isinstance(told, dict) else None
    return found if isinstance(found, str) else None


LITELLM = Target(text=text, setup=_SETUP)
