"""Which facts a question asks for: one table of patterns per language, searched anywhere in a sentence."""

# ruff: noqa: E501  (one pattern a row: a table reads better than wrapped strings)

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from memlab.offline.chat_model.facts import RULES, Fact, read_clause
from memlab.offline.chat_model.text import fold, sentences
from memlab.offline.chat_model.yes_no import as_statement


class Query(NamedTuple):
    """One fact that is asked for.

    `key`: an attribute's words; `shown`: as the asker spells them; `about`: a category or verb; `fact`: yes or no?
    """

    kind: str
    key: str = ""
    about: str = ""
    fact: Fact | None = None
    shown: str = ""


_WH = r"\b(?:what(?:'?s)?|which|whats|tell me|remind me|name|list|say|remember|know|recall|forg[eo]t\w*|guess)\b"
_I = r"\b(?:i|i'?m|am i|i am)\b"
_EN = (
    ("name", r"\bmy (?:full |first |real |own |given |actual )?name\b(?!'s)(?! of)(?! day)"),
    ("name", r"\bwho\b.{0,6}\b(?:am i|i am|i'm|im|is this|is talking|am i talking as|you'?re talking to|are you talking to|you are talking to)\b(?! (?:\w+ )?(?:with|to|of|about|into|married|dating)\b)"),
    ("name", r"\bwhat\b.{0,30}\b(?:am i|i am|i'm|im|do you|should you|i was|was i|would you|people|everyone|friends|can you|will you)\b.{0,10}\b(?:called|call me|named)\b|\bhow (?:should|do|would|will) you (?:call|address) me|\bknow me\b\W*$"),
    ("avoid", r"\b(?:what|which|anything|something|foods?|things?)\b.{0,40}\b(?:i|am i)\b.{0,12}\b(?:can'?t|cannot|shouldn'?t|must not|not allowed|don'?t|avoid|never)\b.{0,8}\b(?:eat|drink|have|handle|take|avoid|order)?|\bwhat\b.{0,10}\b(?:can'?t|cannot|shouldn'?t|should|must|do|don'?t) i (?:not )?(?:eat|drink|have|avoid|handle)|\bwhat\b.{{0,12}}\bi not\b.{{0,6}}\b(?:eat|drink|have|handle|tolerate)|\bwhat can'?t i (?:eat|drink|have|handle|tolerate)|\bdietary\b|\bmy (?:food )?restrictions"),
    ("allergy", r"\bwhat\b.{0,60}\ballerg|\bwhich\b.{0,60}\ballerg|\b(?:am|do) i\b.{0,25}\ballerg\w*(?: to (?:anything|something|any))?\W*(?:at all)?\W*$|\bmy (?:food )?allerg|\ballerg\w*.{0,20}\bdo i have|\bany allerg|\bi(?:'m| am) allergic to\W*$|\bdo i have (?:an|any)\b.{0,10}\ballerg"),
    ("dislike", r"\bwhat\b.{0,40}\b(?:do|don'?t|did|do not)? ?i\b.{0,20}\b(?:not like|don'?t like|dislike|hate|stand|bear|can'?t stand|don'?t enjoy|not enjoy|detest|don'?t love|not into|not fond|not keen|not a (?:big |huge )?fan)|\b(?:what|which)\b.{0,40}\bdon'?t i (?:like|eat|enjoy|love)|\bmy dislikes\b|\b(?:things?|foods?|anything|something) (?:that )?i (?:hate|dislike|don'?t like|can'?t stand)"),
    ("like", r"\b(?:what|which|whats|who)\b(?P<a>(?: [a-z-]+){0,3}?)\b (?:do|did|am|would|was) i\b.{0,24}\b(?:like|love|enjoy|prefer|into|fond of|keen on|fan of|adore|interested in|obsessed|crazy about)(?! to (?:live|work))(?P<b>.*)"),
    ("like", r"\bwhat\b(?P<a>(?: [a-z]+){0,2}?) (?:i|i'?m|i am)\b.{0,20}\b(?:like|love|enjoy|prefer|into|fond of)(?P<b>.*)|\bmy (?:hobbies|hobby|likes|interests|preferences|tastes?)\b|\b(?:things?|something|anything|foods?) (?:that )?i (?:like|love|enjoy)"),
    ("lives", r"\bwhere\b.{0,40}\b(?:i|am i|we)\b.{0,20}\b(?:live|living|based|reside|staying|stay|moved?)\b|\b(?:which|what) (?:city|town|country|place|part|street|area)\b.{0,25}\bi\b.{0,15}\b(?:live|living|based|reside|in)\b|\bmy (?:home|city|town|address|home address)\b|\bwhere(?:'s| is) my (?:home|house)"),
    ("from", r"\bwhere\b.{0,40}\b(?:i|i'm|am i)\b.{0,25}\b(?:from|born|grow up|grew up|raised)\b|\bwhat(?:'s| is)? (?:country|city|town|place)\b.{0,25}\bi\b.{0,15}\b(?:from|born)|\bwhich (?:country|city|town|place)\b.{0,25}\bi\b.{0,15}\b(?:from|born|grow)|\bmy (?:home ?town|origin|nationality|birthplace|home country)"),
    ("work", r"\bwhere\b.{0,25}\bi\b.{0,10}\bwork|\b(?:who|which company|what company)\b.{0,12}\bi work for|\bmy (?:workplace|employer|company)\b"),
    ("job", r"\bmy (?:job|profession|occupation|work|career)\b|\bwhat (?:do|did) i (?:say i )?do\b(?! (?:on|in|every|at|when|to|with|after|for fun)\b)(?: for (?:a living|work|my job))?|\bwhat i do\b|\bwhat (?:kind of )?(?:job|work)\b.{0,15}\bi\b|\bwhat(?: do| am| did)? i\b.{0,12}\bwork as"),
    ("age", r"\bhow old\b.{0,15}\b(?:i|am i|i'm)\b|\bmy age\b|\bwhat age\b.{0,10}\bi\b"),
    ("birthday", r"\bmy (?:birthday|birth ?date|date of birth|bday|b-day)\b|\bwhen\b.{0,15}\bi\b.{0,12}\bborn\b|\bwhen was i born|\b(?:what|which) (?:year|month|day|date)\b.{0,12}\bi\b.{0,6}\bborn"),
    ("diet", r"\bmy diet\b|\bam i (?:an? )?(?P<a>vegetarian|vegan|muslim|diabetic|veggie)"),
    ("pet", r"\b(?:what|which|how many|any)\b.{0,20}\b(?:pets?|animals?)\b.{0,15}\bi\b.{0,5}\b(?:have|own|got)|\bdo i have (?:any |a )?pets?\b|\bmy pets?\b(?!'s| name)"),
    ("study", r"\bwhat\b.{0,20}\b(?:do|am|did) i\b.{0,12}\b(?:study|studying|major)|\bwhere\b.{0,15}\bi\b.{0,10}\bstud|\bmy (?:major|studies)\b"),
    ("everything", r"\bwhat (?:do|did|have|can) you (?:still |already )?(?:know|remember|learn\w*|recall|tell me|say)(?: about me|\W*$)|\b(?:everything|anything|something|all)(?: that)?(?: you(?:'ve| have)?)?(?: know| remember| learned)? (?:about me)|\bwhat (?:have i|did i|i)(?: just)?(?: told| tell| say to) you(?: about (?:me|myself)| so far)?\W*$|\btell me (?:something )?about (?:me|myself)\b|\bdescribe me\b|\bdo you remember me\b|\bsummari[sz]e (?:what you know|me)\b"),
    ("attr name", r"\b(?:the )?names? of my (?P<k>[\w' -]{2,40}?)(?:\W*$| is\b| was\b| again\b)|\bmy (?P<k2>[\w-]+(?: [\w-]+){0,2}?)'?s? names?\b|\b(?:is|are|was|did i call|did i name|do i call|called|name) my (?P<k3>[\w' -]{2,40}?)(?: called| named| again)*\W*$(?<=called)|\bmy (?P<k4>[\w' -]{2,30}?)(?:'s| is| was)? (?:called|named)\b|\b(?:did|do) i (?:call|name) my (?P<k5>[\w' -]{2,30}?)\W*$|\bwho(?:'s| is| was) my (?P<k6>[\w' -]{2,30}?)\W*$"),
    ("attr", rf"(?:{_WH}|\bwho(?:'s)?\b|\bwhen(?:'s)?\b|\bhow\b|\bwhere(?:'s)?\b).{{0,50}}\bmy (?P<k>[\w' -]{{2,40}}?)(?:,? (?:is|was|are|were|again|please|now|called|still|then|at the moment|right now))*\W*$"),
    ("attr", r"\b(?:what|which) (?P<k>year|grade|class|form)\b.{0,6}\b(?:am i|i'?m|i am) in\b"),
    ("have", r"\bhow many (?P<k>[\w -]{2,30}?) (?:do|did|have) i\b|\bdo i have (?:an? |any )?(?P<k2>[\w -]{2,30}?)\W*$"),
    ("does", r"\b(?:what|which|where|when|how|who)\b(?P<a>.{0,40}?)\b(?:do|did|am|can|was|should|have) i (?:also |usually |currently |just |want to |plan to |say (?:that )?i )*(?P<k>[a-z]+)(?P<b>.*)"),
)  # fmt: skip
_ZHQ = r"(?:什么|干嘛|啥|哪|谁|甚么)"
_ZADV = r"(?:平时|平常|有空|最|更|特别|很|比较|都|还|也|到底|究竟|之前|以前|刚才|现在|目前|一般|不|怎么|说过|说|的|是|通常|今年|具体|一共|家里?|真的|觉得|可能|应该)*?"
_ZH = (
    ("surname", rf"我{_ZADV}姓{_ZHQ}|我的?姓(?:氏)?(?:是|\W*$)"),
    ("name", rf"我的?(?:真实|真)?(?:大名|名字|姓名|全名|真名)(?!.{{0,3}}(?:由来|含义|的意思))(?:又|到底)?(?:是|叫)?(?:{_ZHQ}|多少|吗|呢|\W*$|来着|么)?"),
    ("name", rf"我{_ZADV}(?:叫|名叫|该怎么称呼|应该怎么称呼)(?:做|作)?{_ZHQ}|我是{_ZHQ}(?!里|儿|里人|的|国)(?!做)(?!地方)(?!工作|职业|专业|学校|星座|血型|时候)|(?:知道|记得|说出|猜)(?:我是谁|我叫)|(?:怎么|如何|该怎么|应该怎么|可以怎么|要怎么)(?:称呼|叫)我|(?:叫|称呼)我{_ZHQ}|(?:还)?(?:认识|认得|记得)我(?:吗|么|不|\W*$)"),
    ("allergy", rf"我{_ZADV}(?:有)?(?:对)?(?:{_ZHQ}|有没有).{{0,8}}过敏|我{_ZADV}过敏{_ZHQ}?|我的?(?:过敏原|过敏源|过敏史)|{_ZHQ}.{{0,6}}(?:会)?(?:让|使|令)我过敏|我吃{_ZHQ}.{{0,6}}过敏|我有过敏|过敏的(?:东西|食物)?是{_ZHQ}"),
    ("avoid", rf"我{_ZADV}(?:不能|不可以|不敢|不该|吃不了|不宜|不)(?:吃|喝|碰)(?:的)?.{{0,6}}{_ZHQ}|我(?:有)?(?:{_ZHQ}|的)?.{{0,4}}(?:忌口|饮食禁忌|禁忌)|{_ZHQ}.{{0,6}}(?:是)?我不能(?:吃|喝|碰)|我有{_ZHQ}.{{0,3}}不能吃|我的?饮食(?:限制|要求)"),
    ("dislike", rf"我{_ZADV}(?:不(?:是很|太|怎么|大)?(?:喜欢|爱)|讨厌|反感|厌恶|受不了|怕|害怕)(?P<a>吃|喝|看|听|玩|做)?(?:的)?.{{0,6}}?{_ZHQ}(?P<b>.*)|{_ZHQ}.{{0,5}}我(?:不喜欢|讨厌|不爱)"),
    ("attr", rf"我(?P<k>最(?:喜欢|爱|喜爱|讨厌|不喜欢|擅长)(?:吃|喝|看|听|玩|去|读)?的[^，,是]{{1,8}}?)(?:又|到底)?(?:是|叫|有)(?:{_ZHQ}|多少)|(?:知道|记得|告诉我|说说|猜)我(?P<k2>最(?:喜欢|爱|喜爱|讨厌)的[^，,是]{{1,8}}?)(?:是{_ZHQ}.*|吗|么)?\W*$"),
    ("like", rf"我(?:平时|都|还)*有{_ZHQ}(?:兴趣|爱好|兴趣爱好)|我{_ZADV}(?:迷上了?|沉迷于?|入坑了?|痴迷)(?:了)?{_ZHQ}"),
    ("like", rf"我{_ZADV}(?:喜欢|爱好|爱|热爱|喜爱|中意|感兴趣)(?P<a>吃|喝|看|听|玩|做|去)?(?:的)?.{{0,4}}?{_ZHQ}(?P<b>.*)|我的?(?:兴趣爱好|爱好|兴趣|喜好|口味)|{_ZHQ}.{{0,5}}我(?:最)?喜欢(?!不)|我对{_ZHQ}.{{0,4}}感?兴趣"),
    ("attr", r"我.{0,5}?(?:读|上|念)?(?:几|哪个|什么)(?P<k>年级)|我(?:有)?多(?P<k2>高|重)"),
    ("lives", r"我(?:现在|目前|人)*在(?:哪里|哪儿|哪个城市|哪座城市|哪)(?:呢|呀|啊)?\W*$"),
    ("lives", rf"我{_ZADV}(?:家)?{_ZADV}(?:住|居住|生活|定居)(?:在|于|的地方|的城市)?.{{0,3}}(?:{_ZHQ}|何|\W*$)|我家(?:住)?(?:是)?(?:在|位于)?{_ZHQ}|我的?(?:地址|住址|居住地|住处|家庭住址)|我{_ZADV}在{_ZHQ}.{{0,6}}(?:住|生活|定居)|我{_ZADV}在{_ZHQ}.{{0,2}}(?:城市|地方)(?!工作|上班)|我{_ZADV}(?:搬)(?:到|去)(?:了)?{_ZHQ}"),
    ("from", rf"我{_ZADV}(?:来自|从|出生在|出生于|生于|老家|家乡|故乡|籍贯|祖籍){_ZADV}(?:在)?{_ZHQ}|我是{_ZHQ}(?:里|儿)的|我是{_ZHQ}(?:个地方|里|儿|国|个国家|个城市|地方|个省)?的?人|我的?(?:家乡|老家|故乡|籍贯)|我{_ZADV}在{_ZHQ}.{{0,4}}出生"),
    ("work", rf"我{_ZADV}在{_ZHQ}(?:里|儿|个|家)?[^，]{{0,4}}(?:工作|上班|上学|读书|念书|任职|就职|实习|学习|读|念|教书)|我的?(?:公司|单位|学校)(?:是|在|叫){_ZHQ}"),
    ("job", rf"我{_ZADV}(?:做|干|从事|当){_ZHQ}(?!饭|菜|梦|事)|我的?(?:工作|职业|专业工作)(?:是|\W*$|吗|呢)|我{_ZADV}{_ZHQ}(?:工作|职业)|我是{_ZHQ}(?:职业|工作)|我靠{_ZHQ}"),
    ("age", r"我(?:今年|现在|到底|是|的|有|都|应该|已经)*(?:几岁|多大|多少岁)|我的?年龄|我的?岁数|我.{0,4}年纪"),
    ("birthday", r"我的?(?:生日|出生日期)|我.{0,4}(?:什么时候|哪天|哪一天|几月|哪年|何时).{0,4}(?:生|出生|生日|生的)|我过生日"),
    ("pet", rf"我{_ZADV}(?:养|有)(?:了|过)?(?:几只|{_ZHQ}|多少|没有)?[^，]{{0,5}}(?:宠物|动物)(?:吗|呢|么)?\W*$|我{_ZADV}养(?:了|过)?{_ZHQ}|我的?宠物(?!的?名|叫)"),
    ("attr name", rf"我(?:家|的)*(?P<k>[^，,？?叫是的]{{1,10}}?)(?:的名字|名字|的大名)?(?:到底|又)?(?:叫|是叫|名叫)(?:做)?(?:{_ZHQ}|\W*$|来着)|我(?:家|的)*(?P<k2>[^，,？?叫是]{{1,10}}?)的?(?:名字|大名|姓名)(?:是|叫)?(?:{_ZHQ}|吗|呢|\W*$|来着)|我(?:家|的)*(?P<k3>[^，,？?叫是的]{{1,8}}?)是谁|谁是我的?(?P<k4>[^，,？?]{{1,8}})"),
    ("have", r"我家?(?:里)?(?:一共)?(?:有|养了?)(?:几|多少)(?:个|只|条|位|本|辆|台)?(?P<k>[^，,？?吗呢]{1,6})"),
    ("study", rf"我{_ZADV}(?:学|读|念){_ZHQ}(?:专业|的|\W*$)|我的?专业"),
    ("does", rf"我{_ZADV}(?P<k>会说|会弹|会|在学习?|在读|在看|在|正在学|学过?|学了|弹|打算|计划|想学|想去|想买|想|准备|练|教|开|骑|收集|用|玩|读|看|养|去|每天早上|参加|研究|买了?|负责)(?:的(?:是)?)?(?:{_ZHQ}|几)"),
    ("everything", r"介绍一下?我(?!们)|(?:知道|记得|了解|记住)(?:了)?(?:关于)?我(?:的)?(?:什么|哪些|多少|一切|啥|信息|情况|所有)|关于我的?|(?:说说|介绍|描述|告诉我).{0,4}(?:我这个人|我的情况|关于我)|对我(?:的)?(?:了解|印象|知道)|我(?:都|刚才|之前|跟你|和你|给你|对你|告诉过你|告诉你|告诉了你)+(?:说|讲|告诉)?(?:过|了)?(?:你)?(?:什么|哪些|啥)|我是(?:一个)?什么样的人|我是怎样的人"),
    ("attr", rf"我的?(?P<k>(?:大|小)?[\u3400-\u9fff]{{1,3}})(?:是)?(?:做|干){_ZHQ}(?:工作|职业)?的?|我(?:是|属)?(?:什么|啥|哪个?)(?:个)?(?P<k5>星座|血型|生肖|[\u3400-\u9fff]{{1,3}}型)|我属(?P<k6>)(?:什么|啥)|我(?:家)?的?(?P<k4>[^，,？?是在有]{{1,10}}?)(?:又|到底|究竟|现在)?(?:是|在|有)?(?:{_ZHQ}|多少|几(?!乎)|怎样|如何|怎么样|多)|(?:告诉我|知道|记得|说说|提醒我|说出|请问)我的(?P<k2>[^，,？?是]{{1,10}}?)(?:是)?(?:吗|么|呢|\W*$)|^我的(?P<k3>[^，,？?是]{{1,10}}?)(?:呢|是)?\W*$"),
)  # fmt: skip
_RU_MY = r"(?:мо(?:й|я|е|и|его|ей|их|ю|ему|им|ем))"
_RU = (
    ("attr name", rf"\b(?:как|имя|кличк\w+)\b.{{0,25}}\b(?:зовут|звать|называется|имя|назвал[а]?)?\s*{_RU_MY} (?P<k>(?!имя)[а-я-]+(?: (?!зовут|помни|звать)[а-я-]+){{0,2}}?)(?:,? (?:зовут|звать|называ\w+|кстати|помни\w+))*\W*$|\b{_RU_MY} (?P<k2>[а-я-]+(?: [а-я-]+){{0,2}}?) (?:зовут|звать)\b|\bкто {_RU_MY} (?P<k3>[а-я -]{{2,30}}?)\W*$"),
    ("name", r"\bкакое у меня (?:настоящее |полное )?имя|\bменя\b.{0,15}\b(?:зовут|звать|зовешь|назвать|называть)|\b(?:зовут|звать|зовете|называть|называешь|зовешь)\b.{0,10}\bменя\b|\bкто я\b|\bя кто\b|\bкто же я\b|\b(?:мое|моего|моем) (?:настоящее |полное )?(?:имя|имени)\b|\bмо[ей] имя\b|\bпо имени\b.{0,15}\bменя|\bко мне обращ|\bобраща\w+ ко мне|\b(?:помни\w+|узна\w+) меня\b(?! (?:люб|нрав))|\bимя мое"),
    ("allergy", r"\b(?:на что|на какие|на какой|на какую|от чего|что)\b.{0,30}\b(?:аллерги)|\bаллерги\w*\b.{0,25}\b(?:на что|у меня|какая|есть ли)|\bмо[еяйю]\w* аллерги|\bу меня\b.{0,15}\b(?:аллерги\w*)(?: на что-(?:то|нибудь))?\W*$|\bаллергик\w*\W*$"),
    ("avoid", r"\b(?:что|чего|какую|какие|каких)\b.{0,25}\b(?:мне нельзя|нельзя мне|я не (?:ем|пью|могу|употребляю|должен|должна)|мне не (?:стоит|следует|рекоменд))|\bмо\w+ (?:пищев\w+ )?ограничени"),
    ("dislike", r"\b(?:что|чего|какую|какие|какой|кого|каких)\b.{0,30}\b(?:я\b.{0,14}(?:не (?:люблю|переношу|выношу|терплю|перевариваю)|ненавижу|терпеть не могу)|меня (?:бес|раздраж)|мне\b.{0,14}не (?:очень )?нрав)|\b(?:не люблю|ненавижу) я\b"),
    ("like", r"\b(?:что|чего|кого|чем|какую|какой|какие|какая|какое|какого)\b(?P<a>.{0,30}?)\b(?:я\b.{0,20}\b(?:люблю|обожаю|предпочитаю|увлекаюсь|интересуюсь|тащусь|фанате)|мне\b.{0,15}\bнрав[ия]тся|(?:люблю|предпочитаю|увлекаюсь|нравится|нравятся) (?:я|мне))(?P<b>.*)|\bмо[ие] (?:хобби|увлечени\w+|интересы|предпочтения|вкусы)"),
    ("lives", r"\bгде\b.{0,30}\b(?:я\b.{0,20}\bжив|жив[ую]\w* я|проживаю|мой дом|мой адрес)|\bв как(?:ом|ой) (?:городе|стране|районе|месте)\b.{0,20}\b(?:жив|прожив)|\bмо[йеюя] (?:адрес|место жительства)|\bкуда я\b.{0,12}\bпереехал|\bжив[уe] я где"),
    ("from", r"\bиз как\w+\b.{0,6}\bя\b|\bоткуда\b.{0,30}\bя\b|\bя\b.{0,10}\bоткуда\b|\bгде я\b.{0,10}\b(?:родил|вырос)|\b(?:из|в) как(?:ого|ой|ом) (?:города|страны|места|городе|стране)\b.{0,20}\b(?:я|родил)|\bмой родной город"),
    ("work", r"\bгде\b.{0,20}\bя\b.{0,10}\bработаю|\bв как(?:ой|ом) (?:компании|фирме|месте|офисе)\b.{0,10}\bя\b|\bмо[ей]\w* мест[оа] работы"),
    ("job", r"\bкем\b.{0,20}\bя\b|\bкто я по (?:профессии|специальности)|\bмо[яюей]+ (?:профессия|профессию|работа|работу|специальность|професси\w+)\b|\bчем я занимаюсь|\bя работаю кем|\bкакая у меня (?:работа|профессия)|\bгде и кем"),
    ("age", r"\bсколько\b.{0,12}\bмне\b.{0,10}|\bмне\b.{0,5}\bсколько|\bмой возраст|\bмоего возраста|\bкакой у меня возраст"),
    ("birthday", r"\bмо[йе]\w* (?:день рождения|дата рождения|дня рождения|дне рождения|др)\b|\bмоя дата рождения|\bу меня (?:день рождения|др)\b|\b(?:когда|в каком (?:году|месяце)|какого числа)\b.{0,12}\bя\b.{0,5}\bродил"),
    ("pet", r"\bкак(?:ой|ие|ая)\b.{0,20}\b(?:питом|домашн\w+ животн|животн)|\bу меня\b.{0,10}\b(?:питом|домашн\w+ животн)|\bмо[йие]\w* питом\w+\W*$|\bкто у меня (?:живет|есть)"),
    ("study", r"\bгде\b.{0,12}\bя\b.{0,8}\bучусь|\bна кого\b.{0,12}\bучусь|\bв как(?:ом|ой) (?:вуз|университет|школ|институт|класс|курс)|\bна каком\b.{0,8}\bкурсе"),
    ("everything", r"\bчто\b.{0,25}\b(?:обо мне|про меня)\b|\b(?:расскажи\w*|опиши\w*)\b.{0,12}\b(?:обо мне|про меня|меня)\b|\bчто я (?:тебе |вам |уже )*(?:рассказал|говорил|сказал|рассказывал)\w*(?: (?:тебе|вам|о себе))*\W*$|\bчто (?:ты|вы) (?:запомнил|помни|знае)\w*\W*$"),
    ("attr", rf"\b(?:как\w+|кто|что|где|когда|сколько|назови\w*|напомни\w*|скажи\w*|помни\w*|знае\w*|чем|подскажи\w*)\b.{{0,40}}\b(?:{_RU_MY}|у меня) (?P<k>[а-я-]+(?: [а-я-]+){{0,3}}?)\W*$|\bкак\w+\s+(?:у меня\s+)(?P<k2>[а-я -]{{2,30}}?)\W*$|^\W*{_RU_MY} (?P<k3>[а-я -]{{2,30}}?)\W*$|\bкак(?:ой|ая|ое|ие) (?P<k4>[а-я-]+) у меня (?P<k5>[а-я]+)\W*$"),
    ("have", r"\b(?:сколько|есть ли)\b.{0,6}\bу меня (?P<k>[а-я -]{2,30}?)\W*$"),
    ("does", r"\b(?:что|чем|на чем|как\w+|где|когда|куда|о чем|чего|кого)\b(?P<a>.{0,25}?)\bя (?:сейчас |обычно |еще )?(?P<k>[а-я]+)(?P<b>.*)"),
)  # fmt: skip
TABLE = {
    lang: tuple((kind, re.compile(p, re.I)) for kind, p in rows)
    for lang, rows in (("en", _EN), ("zh", _ZH), ("ru", _RU))
}
# Kinds that a match of the first makes superfluous: "what is my name" is no question for an attribute called "name".
_GENERIC = ("attr", "attr name", "does", "have", "pet")

_ASKING = {
    "en": re.compile(r"\?|\b(?:what|what'?s|whats|where|wheres|who|when|which|how|why|do|does|did|am|is|are|can|could|tell|remind|remember|know|guess|say|name|list|recall|forgot|describe|any)\b", re.I),
    "zh": re.compile(r"[?？]|什么|啥|谁|哪|吗|呢|么|多少|几|怎|何|干嘛|还是|是不是|有没有|能不能|会不会|可不可以|对吧|是吧|多大|多高|多重|介绍|描述|告诉我|知道|记得|说说|说出|猜|提醒|来着|关于我|称呼|我的|认识|喜不|爱不|吃不|过不"),
    "ru": re.compile(r"\?|\b(?:как\w*|что|чем|чего|где|кто|кем|кого|когда|куда|откуда|сколько|ли|скажи\w*|назови\w*|напомни\w*|подскажи\w*|помни\w*|знаешь|знаете|угадай\w*|расскажи\w*|мое имя|опиши)\b", re.I),
}  # fmt: skip
_SELF = {
    "en": re.compile(r"\b(?:i|i'?m|we|our|my|me|myself|am|mine|who)\b", re.I),
    "zh": re.compile(r"我|本人|俺|咱"),
    "ru": re.compile(r"\b(?:я|мне|меня|мо[йяеию]\w*|мной|себе|люблю|живу|работаю)\b", re.I),
}


@lru_cache(maxsize=4096)
def queries(text: str, lang: str) -> tuple[Query, ...]:
    """What a message asks about its writer, in the order it asks."""
    found: list[Query] = []
    for sentence in sentences(text)[-40:]:
        plain = fold(sentence)
        if _ASKING[lang].search(plain) and _SELF[lang].search(plain) and not _is_statement(sentence, lang):
            found += _yes_or_no(sentence, lang) or _wanted(plain, lang)
    return tuple(dict.fromkeys(found))


def asks_about_self(text: str, lang: str) -> bool:
    """Whether a message asks something about its writer, understood or not."""
    plain = fold((sentences(text) or [""])[-1])
    asked = RULES[lang].QUESTION.search(plain) and _ASKING[lang].search(plain)
    return bool(asked and _SELF[lang].search(plain))


def _is_statement(sentence: str, lang: str) -> bool:
    """A request to remember a fact, however politely put ("Can you remember that I'm Anna?")."""
    if RULES[lang].REQUEST.match(fold(sentence)) and not re.search(r"[?？]\s*$", sentence):
        return True
    return bool(RULES[lang].REQUEST.match(fold(sentence)) and _facts_in(sentence, lang))


def _facts_in(sentence: str, lang: str) -> list[Fact]:
    filler = RULES[lang].FILLER.match(fold(sentence))
    return read_clause(sentence[filler.end() if filler else 0 :], lang)


def _wanted(plain: str, lang: str) -> list[Query]:
    """The open questions of one sentence; a specific kind beats the general ones."""
    hits: list[tuple[int, Query]] = []
    for kind, pattern in TABLE[lang]:
        match = pattern.search(plain)
        if match and not (hits and kind in _GENERIC):
            hits.append((match.start(), _query(kind, match, lang)))
    return [query for _, query in sorted(hits, key=lambda hit: hit[0])] if hits else []


def _query(kind: str, match: re.Match[str], lang: str) -> Query:
    groups = match.groupdict()
    key = " ".join(v for name, v in groups.items() if name.startswith("k") and v)
    about = " ".join(v for name, v in groups.items() if name in "ab" and v)
    shown = key.strip()
    key = RULES[lang].key_of(kind, shown) if kind in ("attr", "attr name") else shown
    return Query("attr" if kind == "attr name" else kind, key, about.strip(), shown=shown)


_WORD_QUESTION = {"en": re.compile(r"\b(?:what|where|who|when|which|how|why|whats)\b|\bmy name\W*$|\ballerg(?:y|ies)\W*$|\banything\b|\bany\b|\bsomething\b", re.I), "zh": re.compile(r"什么|啥|谁|哪|几|多少|怎|何|多大"), "ru": re.compile(r"\b(?:как\w*|что|чем|чего|где|кто|кем|кого|когда|куда|откуда|сколько|что-\w+)\b|аллерги\w*\W*$", re.I)}  # fmt: skip


def _yes_or_no(sentence: str, lang: str) -> list[Query]:
    """A yes-or-no question, turned into the statement it asks about and read by the statement rules."""
    if _WORD_QUESTION[lang].search(fold(sentence)):
        return []
    facts = [f for clause in as_statement(sentence, lang) for f in read_clause(clause, lang)]
    facts = [f._replace(kind="can") if f.kind == "does" and f.key in _EATING else f for f in facts]
    queries = [Query(f.kind, f.key, "", f) for f in facts if f.kind not in ("it", "does")]
    return [q._replace(fact=None) if q.fact and _OR.search(q.fact.value) else q for q in queries]


_EATING = ("eat", "drink", "ем", "пью")
_OR = re.compile(r" or | или |还是", re.I)
