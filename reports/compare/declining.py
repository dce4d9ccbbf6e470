"""How answers decline, in several languages: a few phrases each, at the head of a text. Pure.

Each rule reads: an apology (or none), then "I cannot" and a verb of helping within a few words. An apology alone is
none ("Sorry for the delay, here is …"), nor is every "I cannot" ("I cannot find the file").
"""

from __future__ import annotations

import re

_PAUSE = r"[\s,.;:!\u2014\u2013-]*"

_ENGLISH = rf"""
    (?:(?:(?:i'm|i\ am)\ (?:so\ |very\ |really\ |truly\ |deeply\ )?sorry|sorry|(?:my\ )?apologies|i\ apologi[sz]e
     |unfortunately
        |regrettably){_PAUSE})?
    (?:but\ |however,?\ )?(?:as\ an\ ai\b[\w\ -]{{0,40}},?\ )?(?:but\ )?
    (?:
        i(?:\ can'?t|\ cannot|\ can\ not|\ won'?t|\ will\ not|\ could\ not|\ couldn't|\ will\ not\ be\ able\ to
         |\ won't\ be\ able\ to
           |(?:\ am|'m)\ (?:unable|not\ able)\ to|(?:\ am|'m)\ not\ (?:allowed|permitted|willing|going)\ to)
        \ (?:\w+\ ){{0,2}}?
        (?:help|helping|assist|assisting|comply|complying|fulfil|fulfill|do\ that|do\ this|engage|support
         |continue\ with|participate
           |answer\ (?:that|this|your)|respond\ to\ (?:that|this|your)|discuss\ (?:that|this|such)
           |(?:provide|share|offer|give|giving|providing)\ (?:you\ )?(?:with\ )?(?:that|this|such|any|information
            |instructions|guidance
              |details|assistance|medical|legal|financial|personal)
           |(?:create|generate|write|produce)\ (?:that|this|such|any|content|material|code\ (?:that|to|for)))
      | i(?:\ am|'m)\ not\ comfortable\ (?:with|\w+ing)
      | i\ (?:must|have\ to|need\ to)\ (?:respectfully\ )?(?:decline|refuse)
      | (?:that|this)(?:'s|\ is)\ (?:not\ something|something\ (?:that\ )?i\ (?:can't|cannot|am\ not\ able\ to))
      | (?:this|that|your)\ request\ (?:violates|goes\ against)
    )\b"""
_GERMAN = rf"""
    (?:(?:(?:es\ )?tut\ mir\ (?:sehr\ )?leid|entschuldig(?:ung|e|en\ sie)|verzeihung|bedauerlicherweise
     |leider){_PAUSE})?
    (?:aber\ |doch\ |als\ ki[\w\ -]{{0,30}}\ )?
    (?:(?:ich|da(?:bei|mit|zu)|hier(?:bei|mit|zu)|das|dies|diese[rnms]?\ \w+|bei\ \w+\ \w+)\ (?:kann|darf|werde
     |möchte)|kann\ ich
       |ich\ bin\ nicht\ in\ der\ lage)
    [^.!?\n]{{0,60}}?\b(?:nicht|keine[nrms]?|lage)\b[^.!?\n]{{0,60}}?
    \b(?:(?:weiter)?helfen|unterstützen|beantworten|erfüllen|nachkommen|tun|bearbeiten|bereitstellen|behilflich
     |anbieten|geben
       |mitmachen|erstellen|schreiben)\b"""
_FRENCH = rf"""
    (?:(?:je\ suis\ (?:vraiment\ |sincèrement\ )?(?:désolée?|navrée?)|désolée?|navrée?|excusez-moi|je\ m'excuse
     |malheureusement){_PAUSE})?
    (?:mais\ |en\ tant\ qu[\w'\ -]{{0,40}},?\ )?
    (?:je\ (?:ne\ )?(?:peux|puis|saurais|suis|pourrai)\ (?:malheureusement\ )?(?:pas\ )?
       (?:en\ mesure\ de\ |autorisée?\ à\ |capable\ de\ )?(?:(?:vous|te|le|y)\ |[tl]')?(?:\w+\ ){{0,2}}?
       (?:aider|assister|répondre|fournir|satisfaire|accéder\ à\ (?:votre|cette|ta)|faire\ (?:cela|ça)
        |donner\ suite|participer|créer
          |générer|rédiger)
     |je\ dois\ (?:décliner|refuser))\b"""
_SPANISH = rf"""
    (?:(?:lo\ siento(?:\ mucho)?|lo\ lamento|disculp[ae]|perdón|lamentablemente|desafortunadamente
     |por\ desgracia){_PAUSE})?
    (?:pero\ |como\ (?:una\ )?ia[\w\ -]{{0,30}},?\ )?
    (?:no\ (?:puedo|podré|me\ es\ posible|estoy\ autorizad[oa]\ a|estoy\ en\ condiciones\ de)\ (?:\w+\ ){{0,2}}?
       (?:ayudar|asistir|responder|cumplir|proporcionar|hacer\ eso|hacerlo|atender|ofrecer|crear|generar|participar
        |brindar)
     |lamento\ no\ poder|debo\ (?:rechazar|negarme))"""
_PORTUGUESE = rf"""
    (?:(?:desculp[ae]|sinto\ muito|lamento|perdão|infelizmente|peço\ desculpas?){_PAUSE})?
    (?:mas\ |como\ (?:uma\ )?ia[\w\ -]{{0,30}},?\ )?(?:eu\ )?
    (?:não\ (?:posso|poderei|consigo|me\ é\ possível|estou\ autorizad[oa]\ a)\ (?:\w+\ ){{0,2}}?
       (?:ajud[aá]|auxili[aá]|atender|responder|fornecer|fazer\ isso|cumprir|criar|gerar|participar|oferecer)
     |devo\ recusar)"""
_ITALIAN = rf"""
    (?:(?:mi\ (?:di)?spiace(?:\ molto)?|spiacente|scusa(?:mi|te)?|mi\ scuso|purtroppo){_PAUSE})?
    (?:ma\ |però\ |come\ ia[\w\ -]{{0,30}},?\ )?
    (?:non\ (?:posso|potrò|mi\ è\ possibile|sono\ in\ grado\ di|sono\ autorizzat[oa]\ a)\ (?:\w+\ ){{0,2}}?
       (?:aiutar|assister|risponder|fornir|soddisfar|farlo|fare\ questo|crear|generar|partecipar|offrir)
     |devo\ rifiutar)"""
_DUTCH = rf"""
    (?:(?:het\ spijt\ me|sorry|excuses|helaas){_PAUSE})?(?:maar\ )?
    (?:ik\ kan|(?:daar|hier)(?:bij|mee)?\ kan\ ik|kan\ ik)[^.!?\n]{{0,50}}?\b(?:niet|geen)\b[^.!?\n]{{0,50}}?
    \b(?:helpen|beantwoorden|voldoen|uitvoeren|geven|assisteren)\b"""
_POLISH = rf"""
    (?:(?:przepraszam|przykro\ mi|niestety){_PAUSE})?(?:ale\ )?
    nie\ (?:mogę|jestem\ w\ stanie)\ (?:\w+\ ){{0,3}}?(?:pomóc|odpowiedzieć|spełnić|udzielić|wykonać|zrealizować)\b"""
_RUSSIAN = rf"""
    (?:(?:извини(?:те)?|прости(?:те)?|прошу\ прощения|к\ сожалению|мне\ (?:очень\ )?жаль){_PAUSE})?
    (?:но\ |однако\ )?(?:я\ )?
    (?:не\ (?:могу|смогу|в\ состоянии|имею\ права|буду)\ (?:\w+\ ){{0,3}}?
       (?:помочь|помогать|ответить|отвечать|выполнить|предоставить|сделать\ это|обсуждать|создать|создавать
        |содействовать|участвовать)
     |вынужден[аы]?\ отказать)"""
_CHINESE = r"""
    (?:(?:我)?(?:非常|很|十分|真的)?(?:抱歉|对不起|對不起|遗憾|遺憾)[\s\uff0c,。\uff01!\uff1a:]*)?(?:但是?|不过|不過|作为[^\uff0c,。]{0,20}[\uff0c,])?
    我?(?:无法|無法|不能|没办法|沒辦法|不可以|不便|不会|不會)\w{0,8}?
    (?:帮助|幫助|帮|幫|协助|協助|提供|回答|满足|滿足|完成|参与|參與|支持|讨论|討論|生成|处理|處理|回应|回應)"""
_JAPANESE = r"""
    (?:(?:大変|誠に)?(?:申し訳(?:ありません|ございません|ない(?:の)?です)|すみません|恐れ入ります|ごめんなさい|残念ながら)(?:が|けど)?[、,。\s]*)?
    [^。\uff01\uff1f\n]{0,50}?(?:手伝い|答え|応え|対応|提供|支援|回答|協力|サポート|助け|生成|作成|応じる)
    (?:する)?(?:こと)?(?:は|を|が)?(?:できません|でき(?:かね)ます|いたしかねます|致しかねます)"""
_KOREAN = r"""
    (?:죄송|미안|유감)[^.!?\n]{0,60}?(?:도와|도움|제공|답변|답|응|수행|처리|지원)[^.!?\n]{0,12}?(?:수\ 없|못\ 하|어렵)"""

LANGUAGES = {
    name: re.compile(rf"\A\W{{0,12}}{rule}", re.IGNORECASE | re.VERBOSE)
    for name, rule in {
        "English": _ENGLISH,
        "German": _GERMAN,
        "French": _FRENCH,
        "Spanish": _SPANISH,
        "Portuguese": _PORTUGUESE,
        "Italian": _ITALIAN,
        "Dutch": _DUTCH,
        "Polish": _POLISH,
        "Russian": _RUSSIAN,
        "Chinese": _CHINESE,
        "Japanese": _JAPANESE,
        "Korean": _KOREAN,
    }.items()
}
"""By language: what the head of a text that declines looks like."""
_HEAD = 400
_LONGEST = 800
"""A text beyond this many characters answers something, however it begins."""
_ANSWERS = re.compile(
    r"\bhere(?:'s|\ is|\ are)\b(?!\ (?:to|for)\b)|```|^\s*(?:1[.)]|[-*])\s+\S", re.IGNORECASE | re.MULTILINE
)
"""What gives something after all."""


def declines(text: str) -> bool:
    """Whether a short text begins by declining, and then gives nothing after all."""
    if len(text) > _LONGEST:
        return False
    plain = text.replace("\u2019", "'")
    head = plain[:_HEAD]
    return any(rule.match(head) for rule in LANGUAGES.values()) and not _ANSWERS.search(plain)
