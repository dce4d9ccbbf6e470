"""Which language a text is in, told by the small words that every text is full of. Pure."""

from __future__ import annotations

from collections import Counter

_WORDS = {
    "English": """
        the and is are was were of to in that it for with as on you this be have not but they from at or by
        which will would there their what can has had we your if when an""",
    "German": """
        der die das und ist nicht ein eine einen einem einer zu mit von auf für den dem des sich auch wird
        sind im es werden wenn wie oder bei nach aus um durch ich sie wir ihr haben hat kann man noch nur
        aber über zum zur""",
    "French": """
        le la les et est une des dans que qui pour pas sur avec ce il elle sont au aux par plus ne se vous
        nous du ou mais cette être ont été comme c'est leur ses peut je votre""",
    "Spanish": """
        el la los las y es una que de en por con para se del al no como más su sus pero son está este esta
        lo un o fue ser tiene también cuando hay muy sobre usted puede""",
    "Portuguese": """
        o os as e é uma que de em por com para se do da dos das no na nos nas não como mais seu sua mas são
        está este esta um ou foi ser tem também quando muito você pode ao à isso pelo pela""",
    "Italian": """
        il lo la gli le e è una che di in per con si del della dei delle al alla nel nella non come più suo
        sua ma sono questo questa un o essere ha anche quando molto può dal dalla ai sul sulla""",
    "Dutch": """
        de het een en is van niet dat die in te op met voor zijn aan er ook als maar om bij uit naar je
        wordt worden door kan heeft deze dit geen nog meer of hebben""",
    "Polish": """
        i w na z się nie to że jest do jak o co po ale od za tak są przez dla lub może tego oraz by czy był
        jego który która które""",
    "Swedish": """
        och är att det en ett som på av för med den inte till i om har de var kan från men eller så när ska
        mycket vid också bli du""",
    "Turkish": """
        ve bir bu için ile de da çok olarak daha gibi olan en ne var kadar ama sonra değil her ya mi veya
        olduğu göre""",
    "Indonesian": """
        yang dan di untuk dengan ini itu dari tidak pada ke adalah akan dalam atau juga bisa ada saya anda
        karena oleh lebih seperti""",
    "Vietnamese": """
        và của là có không được cho trong một các với những này người để đã từ khi về như nhưng""",
    "Russian": """
        и в не на что с как это по но из к у за от для так же все если или его был она они есть может при""",  # noqa: RUF001
    "Ukrainian": """
        і в не на що з як це та до але за у від для так його є або який були він вона може ще""",  # noqa: RUF001
}
_LANGUAGES: dict[str, tuple[str, ...]] = {}
for _language, _words in _WORDS.items():
    for _word in _words.split():
        _LANGUAGES[_word] = (*_LANGUAGES.get(_word, ()), _language)
_KNOWN = frozenset(_LANGUAGES)
_ENOUGH = 3
"""Different small words from which a text is in a language ..."""
_CLEAR = 1.5
"""... if it has this many times as many as of any other language."""


def language(words: frozenset[str]) -> str | None:
    """The language of a text with these words, in lower case; ``None`` when it has too few small words to tell.

    A word that several languages share counts for each of them in part.
    """
    hits: Counter[str] = Counter()
    weights: Counter[str] = Counter()
    for word in words & _KNOWN:
        spoken = _LANGUAGES[word]
        for name in spoken:
            hits[name] += 1
            weights[name] += 1 / len(spoken)  # type: ignore[assignment]
    ranked = weights.most_common(2)
    if not ranked or hits[ranked[0][0]] < _ENOUGH:
        return None
    rival = ranked[1][1] if len(ranked) > 1 else 0
    return ranked[0][0] if ranked[0][1] >= _CLEAR * rival else None
