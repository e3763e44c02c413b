"""Words that ask: no passage has to hold them to be an answer."""

from __future__ import annotations

import re

SAYING_NOTHING = frozenset(
    "also answer could describ explain find gave give happen like list look mani mean much name often pleas say shall "
    "show tell us use way would".split()
)
"""Words of English that are asked for by nobody, as the index stems them: what holds them is no nearer to an answer."""
_ASKING = """
    cost price kost bekommt bekomm heisst find gibt geschieht passiert macht
    combien cout quand quel quell pourquoi faut peut peuv doit trouv fair appel serv
    cuant cuest cual quien dond hay deb pued hac llam encuentr empiez
    сколько скольк стоит когд поч как каков находит можн происход бывает
    كم من متي لماذا هل اين كيف ماذا ثمن سعر يوجد
    多少 少钱 什么 么时 时候 怎么 么办 哪个 哪一 哪些 哪里 几个 为什 谁的 可以 多 少 钱 什 么 哪 几 谁 吗 呢 怎 办 是
    何時 何名 何人 何日 何円 何年 何を 何 誰
    얼마 마입 언제 누구 무엇 어디 어떻 떻게 몇시 입니 니까 합니 습니 됩니 립니 있습
"""
ASKING = frozenset(_ASKING.split())
"""As the index stems them; of scripts without spaces, pairs and single characters."""
_ENDING = re.compile(r"[\u3040-\u309f]{1,2}")


def is_asking(term: str) -> bool:
    """Return whether a word of a query asks: what lacks it may answer, what holds it may the more.

    Pairs of Hiragana are endings and particles nearly always.
    """
    return term in ASKING or _ENDING.fullmatch(term) is not None
