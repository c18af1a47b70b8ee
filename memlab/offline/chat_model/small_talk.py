"""Greetings, thanks, goodbyes, "who are you", jokes; and the honest reply to what isn't understood."""

# ruff: noqa: E501  (one text or pattern a row)

from __future__ import annotations

import re

from memlab.offline.chat_model import wording
from memlab.offline.chat_model.conversation import Conversation
from memlab.offline.chat_model.text import fold
from memlab.offline.chat_model.turn import Turn

_PATTERNS = {
    "identity": r"\b(?:who|what) (?:are|r) (?:you|u)\b|\byour name\b|\bare you (?:an? )?(?:ai|llm|robot|bot|human|real|chat ?gpt|gpt|language model|person)|\bwhat can you do\b|\babout yourself\b|\bintroduce yourself\b"
    r"|你(?:是谁|叫什么|叫啥|是什么|的名字|是哪位|是不是(?:人|机器|ai)|是(?:一个)?(?:机器人|人工智能|ai|大模型|真人|人)吗|会(?:做|干)?什么|能(?:做|干)?什么|介绍一下你自己)|介绍一下?你自己|您(?:是谁|贵姓|叫什么)"
    r"|\bкто (?:ты|вы)\b|\b(?:ты|вы) кто\b|\bкак (?:тебя|вас) зовут|\bтво[её] имя|\bваше имя|\b(?:ты|вы) (?:бот|робот|человек|ии|нейросеть)|\bчто (?:ты|вы) уме\w+|\bрасскажи\w* о себе",
    "joke": r"\b(?:joke|funny story|make me laugh|something funny)\b|笑话|段子|逗我笑|逗逗我|анекдот|шутк|пошути|рассмеши",
    "again": r"^\W*(?:(?:tell me )?(?:another|one more)(?: one)?|again)(?: please)?\W*$|^(?:再来一?个|再讲一?个|换一?个|还有吗|再说一?个)[吧呗。！!？?]*$|^\W*(?:ещ[её](?: один| одну)?|другой|другую|давай ещ[её])\W*$",
    "thanks": r"\b(?:thanks|thank you|thx|cheers|ty)\b|谢谢|多谢|感谢|谢啦|谢了|\b(?:спасибо|благодарю|спс)\b",
    "bye": r"\b(?:bye|goodbye|see you|see ya|good night|farewell|take care)\b|再见|拜拜|拜|晚安|下次见|回头见|明天见|\b(?:пока|до свидания|до встречи|прощай\w*|до завтра|спокойной ночи)\b",
    "how": r"\bhow (?:are|r) (?:you|u)|\bhow'?s it going|\bwhat'?s up\b|你好吗|最近怎么样|你怎么样|\bкак (?:дела|ты|вы|жизнь|поживаешь|поживаете)\b",
    "hello": r"^\W*(?:hi+|hello+|hey+|hiya|yo|howdy|greetings|good (?:morning|afternoon|evening|day))\b|^\W*(?:你好|您好|嗨|哈喽|哈啰|早上好|早安|下午好|晚上好|大家好|在吗|嘿|喂|hello|hi)|^\W*(?:привет\w*|здравствуй\w*|добр\w+ (?:день|утро|вечер)|хай|салют|здорово|доброго \w+)",
}  # fmt: skip
PATTERNS = {name: re.compile(pattern, re.I) for name, pattern in _PATTERNS.items()}

REPLIES = {
    "identity": {
        "zh": "我是一个基于规则的课堂模型，不是大语言模型（LLM）。我只知道这次请求的消息里写了什么。",
        "en": "I'm a rule-based classroom model, not an LLM. I only know what the messages of this request say.",
        "ru": "Я учебная модель, построенная на правилах, а не LLM. Я знаю только то, что есть в сообщениях этого запроса.",
    },
    "thanks": {"zh": "不客气！", "en": "You're welcome!", "ru": "Пожалуйста!"},
    "bye": {"zh": "再见！", "en": "Goodbye!", "ru": "До свидания!"},
    "how": {"zh": "我很好，谢谢！有什么想聊的吗？", "en": "I'm fine, thanks! What would you like to talk about?", "ru": "Всё хорошо, спасибо! О чём поговорим?"},
    "hello": {"zh": "你好！", "en": "Hello!", "ru": "Привет!"},
}  # fmt: skip
JOKES = {
    "zh": (
        "为什么程序员总分不清万圣节和圣诞节？因为 Oct 31 等于 Dec 25。",
        "老师：“你怎么又迟到了？”学生：“路牌上写着：前方学校，请慢行。”",
        "向量走进酒吧，问服务员：“我的相似度够高吗？”服务员说：“看角度。”",
    ),
    "en": (
        "Why do programmers mix up Halloween and Christmas? Because Oct 31 equals Dec 25.",
        "Two vectors met at a right angle. They had nothing in common.",
        "I asked the stateless model for yesterday's joke. It said: “Which yesterday?”",
    ),
    "ru": (
        "Почему программисты путают Хэллоуин и Рождество? Потому что Oct 31 равно Dec 25.",
        "Встретились два вектора под прямым углом. Общего у них не нашлось.",
        "— Модель, помнишь вчерашний анекдот? — А что такое «вчера»?",
    ),
}  # fmt: skip
NOT_UNDERSTOOD = {
    "zh": "这句话我没有听懂，所以没有记下任何信息。",
    "en": "I did not understand that, so I have kept no fact from it.",
    "ru": "Этого я не понимаю, поэтому ничего не запоминаю.",
}
NO_ANSWER = {
    "zh": "这个我不知道：我是基于规则的课堂模型，只知道消息里写了什么。",
    "en": "I don't know: I'm a rule-based classroom model and only know what the messages say.",
    "ru": "Этого я не знаю: я учебная модель на правилах и знаю только то, что есть в сообщениях.",
}
EMPTY = {"zh": "我没有收到问题。", "en": "I did not get a question.", "ru": "Я не вижу вопроса."}
_LONGEST_SMALL_TALK = 300


def identity_or_joke(conversation: Conversation) -> Turn | None:
    """ "Who are you?", "Tell me a joke", "another one"."""
    text = fold(conversation.question[:_LONGEST_SMALL_TALK])
    if PATTERNS["joke"].search(text) or (PATTERNS["again"].search(text) and told(conversation)):
        return Turn(joke(conversation), skill="joke")
    if PATTERNS["identity"].search(text):
        return Turn(REPLIES["identity"][conversation.lang], skill="small_talk")
    return None


def courtesy(conversation: Conversation) -> Turn | None:
    """Thanks, goodbye, how are you, hello."""
    text = fold(conversation.question)
    if len(text) > _LONGEST_SMALL_TALK:
        return None
    for name in ("how", "thanks", "bye", "hello"):
        if PATTERNS[name].search(text):
            return Turn(REPLIES[name][conversation.lang], skill="small_talk")
    return None


def told(conversation: Conversation) -> list[str]:
    """The jokes that can be seen in the conversation."""
    seen = [line.text for line in conversation.everything if line.speaker != "user"]
    return [joke for jokes in JOKES.values() for joke in jokes if any(joke in text for text in seen)]


def joke(conversation: Conversation) -> str:
    """A joke it can't see in its messages, if one is left; `seed` chooses."""
    jokes = JOKES[conversation.lang]
    seen = told(conversation)
    fresh = [text for text in jokes if text not in seen] or jokes
    return fresh[conversation.seed % len(fresh)]


def not_understood(conversation: Conversation) -> Turn:
    """The last resort: admits that it knows no answer, or has kept nothing."""
    lang, text = conversation.lang, fold(conversation.question)
    if not text.strip():
        return Turn(EMPTY[lang], skill="fallback")
    asked = wording.RULES[lang].QUESTION.search(text[-400:])
    return Turn((NO_ANSWER if asked else NOT_UNDERSTOOD)[lang], skill="fallback")
