"""HAProxy: a map file of one line; read at a reload."""

from __future__ import annotations

from migrate.weights.target import Target, parts

_SETUP = """\
# In haproxy.cfg. The hash of the header decides, so a session stays together, and a larger share keeps everybody whom
# a smaller one had. Requests without the header are drawn one by one. Without FILE's line the baseline answers all.
# After each change: --then 'systemctl reload haproxy'
frontend llm
    mode http
    bind :8080
    http-request set-var(txn.share) str(candidate),map_str_int(/etc/haproxy/migrate.map,0)    # FILE
    http-request set-var(txn.place) rand(10000)
    http-request set-var(txn.place) req.hdr(x-session-id),xxh32,mod(10000) if { req.hdr(x-session-id) -m found }
    use_backend candidate if { var(txn.place),sub(txn.share) -m int lt 0 }
    default_backend baseline
backend baseline
    mode http
    server baseline 10.0.0.5:8000
backend candidate
    mode http
    server candidate 10.0.0.9:8000
"""


def text(share: float, _: str = "") -> str:
    """The whole file: below which of 10,000 places the candidate answers."""
    return f"candidate {parts(share)}\n"


HAPROXY = Target(text=text, setup=_SETUP)
