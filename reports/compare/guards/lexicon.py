"""English words that carry no content, that deny, that count, and that mean the opposite of another; and stems."""

from __future__ import annotations

from functools import lru_cache


def words(text: str) -> frozenset[str]:
    """The words of a list."""
    return frozenset(text.split())


AUXILIARIES = words(
    "is are was were be been being am do does did has have had having will would shall should can could may might must "
    "need ought let ca wo sha ai"  # the last four are what "can't", "won't", "shan't" and "ain't" begin with
)
"""A "not" behind one of them denies the whole clause."""

FUNCTION = AUXILIARIES | words(
    "a an the to of in on at by for from with and or but so as if then than that this these those it its he she they we "
    "you i me my your his her their our us them him there here who whom whose which what when where how why while though "
    "although because since until till before after into onto over under about between among through during up down out "
    "off also too very quite rather really just even still yet already ever either one once such own same s t re ve ll d "
    "m more less most least other another enough please well now going get got able upon per via again anymore longer"
)
"""Words that stand in every text: two sentences that share them share nothing."""

BOUNDARIES = words(
    "but because although though while whereas which who if when so since that until till where however except therefore"
)
"""Words that begin another clause."""

RAISING = words(
    "think thinks thought believe believes believed suppose supposes supposed expect expects expected seem seems seemed "
    "appear appears appeared feel feels felt guess imagine want wants wanted reckon"
)
"""Verbs that hand their negation on: "I don't think it works" is "I think it doesn't work"."""

DENYING = {
    **dict.fromkeys(words("no none nobody nothing neither nowhere never nor"), "none"),
    **dict.fromkeys(words("hardly scarcely barely rarely seldom few little"), "few"),
}
"""Words that deny their clause, and how much of it they leave."""

COUNTING = {
    **dict.fromkeys(
        words("all every each both always everyone everybody everything everywhere entirely"), "all"
    ),
    **dict.fromkeys(
        words("some someone somebody something somewhere sometimes several occasionally"), "some"
    ),
    **dict.fromkeys(words("many much most mostly often usually lots plenty frequently"), "many"),
    **dict.fromkeys(words("any anyone anybody anything anywhere"), "any"),
}
"""Words that say how much, or how often."""

FOCUSING = words("only solely merely exclusively")
"""Words that say that something holds of nothing else."""

TURNING = words(
    "without non unable fail fails failed failing lack lacks lacked lacking refuse refuses refused decline declines declined "
    "deny denies denied avoid avoids avoided avoiding ohne sans sem senza"
)
"""Words that deny what stands behind them."""

ABROAD = words("nicht kein keine keinen keinem keiner keines nie niemals pas jamais aucun aucune nunca não")
"""Words that deny their clause in German, French, Spanish and Portuguese."""

_OPPOSITES = """open closed; open shut; allow forbid; allow prohibit; allow ban; permit forbid; permit prohibit; allowed banned;
accept reject; approve reject; agree disagree; include exclude;
increase decrease; raise lower; rise fall; grow shrink; gain lose; win lose; success failure;
true false; right wrong; right left; correct wrong; enable disable; activate deactivate; start stop; begin end; attach detach;
lock unlock; encrypt decrypt; compress decompress; install uninstall; import export; upload download; push pull;
high low; higher lower; big small; large small; long short; fast slow; early late; old new; old young; strong weak; hot cold;
warm cold; wet dry; full empty; deep shallow; easy hard; easy difficult; simple complex; cheap expensive; safe dangerous;
safe unsafe; healthy sick; rich poor; hard soft; light dark; light heavy; clean dirty; good bad; better worse; best worst;
positive negative; present absent; public private; local remote; synchronous asynchronous; mutable immutable; maximum minimum;
ascending descending; horizontal vertical; internal external; upper lower; top bottom; front back; first last; north south;
east west; male female; alive dead; guilty innocent; vacant occupied; available unavailable; optional mandatory;
optional required; voluntary mandatory; temporary permanent; odd even; even odd; love hate; like dislike; remember forget;
arrive depart; improve worsen; improve deteriorate; add remove; insert delete; advantage disadvantage; legal illegal;
guaranteed uncertain; attract repel; expand contract; freeze melt; ascend descend; inside outside;
mandatory forbidden; recommend discourage; encourage discourage; visible hidden; online offline"""

_IRREGULAR = """go went gone; take took taken; give gave given; get got gotten; make made; leave left; find found; see saw seen;
come came; know knew known; think thought; say said; tell told; write wrote written; speak spoke spoken; eat ate eaten;
drink drank drunk; drive drove driven; break broke broken; choose chose chosen; begin began begun; buy bought; bring brought;
sell sold; send sent; spend spent; lend lent; build built; keep kept; sleep slept; feel felt; meet met; pay paid; lose lost;
win won; hold held; stand stood; understand understood; run ran; swim swam swum; sing sang sung; sit sat; teach taught;
catch caught; fall fell fallen; fly flew flown; grow grew grown; throw threw thrown; draw drew drawn; wear wore worn;
rise rose risen; ride rode ridden; hide hid hidden; forget forgot forgotten; mean meant; lead led; read read; hear heard;
become became; show showed shown; steal stole stolen; freeze froze frozen; shut shut; shoot shot; fight fought; seek sought;
person people; child children; man men; woman women; foot feet; wake woke woken; forbid forbade forbidden; bear bore born borne;
beat beaten; bite bit bitten; blow blew blown; deal dealt; dig dug; feed fed; hang hung; lay laid; shake shook shaken;
shine shone; sink sank sunk; strike struck; swear swore sworn; tear tore torn; withdraw withdrew withdrawn; have has"""

_BASE = {form: forms.split()[0] for forms in _IRREGULAR.split(";") for form in forms.split()}
_SUFFIXES = ("ing", "ied", "ies", "ed", "es", "s", "ly")
_LENGTH = 6


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """What a lower-case word shares with its other forms: "approved" and "approval", "went" and "go"."""
    word = _BASE.get(word, word).removesuffix("'s").removesuffix("'")
    for suffix in _SUFFIXES:
        root = word.removesuffix(suffix)
        if root != word and len(root) >= 3 and not (suffix == "s" and root[-1] in "siu"):
            word = root + "y" if suffix in ("ied", "ies") else root
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls":
        word = word[:-1]
    return (word.rstrip("e") or word)[:_LENGTH]


OPPOSITES: dict[str, tuple[str, ...]] = {}
"""Stems to the stems that mean their opposite."""
for _pair in _OPPOSITES.split(";"):
    _one, _two = (stem(_word) for _word in _pair.split())
    OPPOSITES[_one] = (*OPPOSITES.get(_one, ()), _two)
    OPPOSITES[_two] = (*OPPOSITES.get(_two, ()), _one)

_PREFIXES = ("non", "dis", "un", "in", "im", "il", "ir", "mis")


@lru_cache(maxsize=16_384)
def undone(word: str) -> tuple[str, ...]:
    """The stems that a lower-case word may be the opposite of: "impossible" of "possible", "closed" of "open"."""
    found = list(OPPOSITES.get(stem(word), ()))
    found += [
        stem(word[len(prefix) :])
        for prefix in _PREFIXES
        if word.startswith(prefix) and len(word) > len(prefix) + 3
    ]
    if word.endswith("less") and len(word) > 7:
        found.append(stem(word[:-4]))
    return tuple(found)
