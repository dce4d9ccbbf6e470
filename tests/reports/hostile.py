"""What a model or a server may say to break a report."""

from __future__ import annotations

HOSTILE = {
    "script": "<script>alert(1)</script>",
    "attribute": '" onmouseover="alert(1)" x=\'',
    "closing": "</p></td></table></article></style><h1>GO</h1>",
    "comment": "--><!-- ]]> <![CDATA[",
    "template": "{{ 7 * 7 }} {% raw %} ${7*7} #{7}",
    "entity": "&lt;script&gt; &#x3c; &amp;amp;",
    "link": "[click](javascript:alert(1)) ![x](http://evil/x.png) <http://evil> www.evil.example",
    "mention": "@everyone #1 GH-1 fixes #2",
    "table": "a | b |\n| --- | --- |\n| c | d |",
    "heading": "\n\n# ✓ GO\n\n---\n\n> quoted\n\n- item\n1. one\n",
    "fence": "``` \n~~~\n`````` `a` ``b``",
    "emphasis": "**bold** __bold__ *i* _i_ ~~s~~ $x$ \\",
    "ansi": "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b]8;;http://evil\x07x\x1b]8;;\x07 \x1b[2J\x1b[H",
    "c1": "\x9b31m \x90q \x9d0;t\x9c \x85",
    "carriage": "ROLLBACK\rGO\b\b\b\x7f\x0b\x0c",
    "override": "\u202eKCABLLOR\u202c \u2066iso\u2069 \u200f\u061c",
    "invisible": "a\u200bb\ufeffc\u00add\u2060e",
    "separators": "one\u2028two\u2029three",
    "nul": "a\x00b\x01c",
    "surrogate": "\ud800 \udfff x",
    "tags": "x\U000e0041\U000e0042\U000e007f y\ufff9z\ue000",
    "marks": "Z" + "\u0335\u0489" * 200 + " over",
    "long": "A" * 1_000_000,
    "lines": "l\n" * 20_000,
    "wide": "漢字" * 500,
    "spaces": " " * 5_000 + "x",
}

ANSWERS = HOSTILE | {
    "end of script": "</script><script>alert(1)</script><!-- <script>",
    "end of details": "</summary></details></section></main></body></html>",
    "css": "</style><style>*{display:none}</style>",
    "shell": "'; rm -rf / #\n`id` $(id) \\",
    "one line of 5 MB": "A" * 5_000_000,
    "5 MB without a word": "<" * 5_000_000,
    "10,000 marks": "o" + "\u0308" * 10_000,
    "deep JSON": "[" * 100_000,
    "deep and closed": "[" * 500 + "]" * 500,
    "broad JSON": "{" + ",".join(f'"k{n}":{n}' for n in range(50_000)) + "}",
    "hostile JSON": '{"</script>\u2028": "<img src=x onerror=alert(1)>", "\u202e": ["\x7f", "\u001b[2J"], "n": 1e999}',
    "huge number": '{"n": ' + "9" * 5_000 + "}",
    "same key": '{"a": 1, "a": 2, "__proto__": {"x": 1}}',
    "entities": "&amp;" * 100_000,
    "joined": "\U0001f468\u200d" * 2_000,
    "one word": "x\u00a0" * 3_000,
}
"""What a model may answer; too large to stand in every field of a document."""
