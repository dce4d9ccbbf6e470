"""nginx: ``split_clients`` in a file that its configuration includes; read at a reload."""

from __future__ import annotations

from migrate.weights.target import PARTS, Target, parts

_SETUP = """\
# In http {} of nginx.conf. The hash of the key decides, so whatever shares a key stays together, and a larger share
# keeps everybody whom a smaller one had. Requests without the header are drawn one by one.
# After each change: --then 'nginx -s reload'
map $http_x_session_id $migrate_key { "" $request_id; default $http_x_session_id; }
include /etc/nginx/migrate-split.conf;    # FILE
upstream baseline { server 10.0.0.5:8000; }
upstream candidate { server 10.0.0.9:8000; }
server {
    listen 8080;
    location / {
        proxy_pass http://$migrate_backend;
        proxy_buffering off;
    }
}
"""


def text(share: float, _: str = "") -> str:
    """The whole file. nginx refuses a part of 0 %, so that at the ends one line is left."""
    place = parts(share)
    if place in (0, PARTS):
        lines = [f"    * {'candidate' if place else 'baseline'};"]
    else:
        lines = [f"    {place / 100:.2f}% candidate;", "    * baseline;"]
    return "\n".join(["split_clients $migrate_key $migrate_backend {", *lines, "}", ""])


NGINX = Target(text=text, setup=_SETUP)
