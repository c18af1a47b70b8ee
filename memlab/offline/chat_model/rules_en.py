"""English: how people state facts about themselves, as tables of patterns.

Every pattern is matched at the START of a clause, after fillers ("well,", "by the way"). That one rule keeps
out most of what isn't a fact about the user: "He said I am ...", "My brother is called ...", "I wish I lived ...".
"""

# ruff: noqa: E501  (one pattern a row: a table reads better than wrapped strings)

from __future__ import annotations

import re

from memlab.offline.chat_model.text import fold, trim

PRECHECK = re.compile(
    r"\*\w|^\s*[-*•] ?\w|\b(?:fans?|obsessed|can\'?t|cannot|fave?|favou?rite|born|turned|just|turns|typo|oops|whoops|sorry|wait|actually|correction|rather|love|adore|hate|detest|enjoy|prefer|got|works?|living|live|moved|based|vegan|vegetarian|allergy|lactose|jk|into|is|are|hi|hello|hey|meet|welcome|good|i|i'?m|i'?ve|my|me|mine|you|your|you're|name|users?|it's|its|it|we|this|called|here|speaking|allergic|no|not|without|nothing|-? ?\w+:)\b",
    re.I,
)
_I_AM = r"i(?:'?m| am)"
_ADV = (
    r"(?:(?:really|also|just|absolutely|do|still|always|usually|often|mostly|only|simply|truly|totally|quite|rather|"
    r"especially|particularly|currently|now|actually|sometimes|generally|both|personally|kinda|kind of|originally|"
    r"definitely|even|very|so|much|most|secretly|however|recently|sort of|presently|severely|badly|deadly|highly|"
    r"mildly|slightly|strongly|extremely|terribly|unfortunately|sadly|a bit|a little|deathly|lowkey|honestly|literally|pretty|super|"
    r"seriously|genuinely|lately|recently|apparently|already|kind of|basically|part[- ]time|full[- ]time|weekends|nights|remotely|sorta) )*?"
)
_LIKE = r"(?:like|love|enjoy|adore|prefer|fancy|luv|worship|can'?t (?:get enough of|live without|stop (?:eating|playing|watching|reading|listening to))|am (?:really |very |quite |so )?(?:fond of|into|keen on|crazy about|obsessed with)|am an? (?:big |huge |great |real )?(?:fan|lover) of)"
_LIKE_BE = r"(?:really |very |quite |so |totally )?(?:fond of|into|keen on|crazy about|mad about|obsessed with|addicted to|hooked on|nuts about|(?:an? )?(?:big |huge |great |real |massive |total )*(?:fan|lover) of)"
_NOT = r"(?:don'?t|do not|didn'?t|did not)"
_CANT = r"(?:can'?t|cannot|can not|couldn'?t|am not able to|am not allowed to|mustn'?t|must not|shouldn'?t|should not|am unable to)"
_VERBS = (
    r"play|speak|drive|study|studied|own|use|collect|read|watch|teach|learn|plan to|want to|need to|go to|attend|ride|"
    r"wear|grow|write|paint|sing|cook|bake|run|code|program in|support|train|practi[cs]e|drink|eat|have to|"
    r"take|do|draw|make|visit|swim|dance|sleep|wake up|get up|commute|volunteer|graduated|major in"
)
_K = r"(?P<k>(?!name\b)[a-z][\w'-]*(?: (?!is\b|are\b|was\b|said\b|told\b|that\b|who\b|thinks?\b|i\b|and\b|says\b)[a-z][\w'-]*){0,3}?)"
_V = r"(?P<v>.+)"
_PETS = r"(?:cat|dog|kitten|puppy|hamster|parrot|rabbit|fish|goldfish|turtle|tortoise|horse|pet|bird|snake|guinea pig|lizard|budgie|canary|mouse|rat|ferret|hedgehog)"
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"

_TABLE: tuple[tuple[str, str, str], ...] = (
    # kind, pattern of the clause, how to say it back
    ("not name", rf"my (?:full |first |real )?name(?:'s| is|)(?: not| isn'?t|n't) {_V}", "you are not called {v}"),
    ("not name", rf"(?:{_I_AM} not|i am no longer) (?:called |named |known as ){_V}", "you are not called {v}"),
    ("not name", rf"(?:don'?t|do not|stop|never)(?: ever)? call(?:ing)? me {_V}", "you are not called {v}"),
    ("not name?", rf"(?:{_I_AM} not|i ain'?t) {_V}", "you are not {v}"),
    ("name?&from", rf"(?:my name(?:'s| is)|{_I_AM}|this is|it'?s|{_I_AM} called) (?P<v>[^\W\d_][\w' -]*?),? (?:and i'?m |and i am |i'?m )?(?:originally )?from (?P<w>.+)", "your name is {v}"),
    ("name", rf"(?:my |the )(?:full |first |real |given |new |actual )?name(?:'?s| is now| is| will be| would be| was|:| =| -)? *(?:spell?ed |spelt |pronounced |actually |really |just )?{_V}", "your name is {v}"),
    ("name", rf"name(?:'?s| is|:) *{_V}", "your name is {v}"),
    ("name", rf"(?:(?:(?:you|u) (?:can|may|could|should)|please|just|everyone|everybody|people|friends|my (?:friends|mates|family|classmates)|they|most people|most|all|usually|always|at school) )*(?:just )?calls? me {_V}", "your name is {v}"),
    ("name?", r"(?:(?:you'?re|you are) (?:talking|speaking|chatting) (?:to|with)|it'?s me,?) {_V}".replace("{_V}", _V), "your name is {v}"),
    ("name", rf"(?:they|my parents|my mum|my mom|my family) (?:named|called) me {_V}", "your name is {v}"),
    ("name", rf"(?:{_I_AM} (?:called|named|known as)|i go by(?: the name(?: of)?)?|i(?:'ve| have)? (?:been|was) (?:named|called)|i answer to|i call myself) {_V}", "your name is {v}"),
    ("name?", rf"{_I_AM} (?!.*\b(?:is|was) )(?P<v>[^\W\d_].*)", "your name is {v}"),
    ("name?", r"(?:this is|it'?s) (?P<v>(?-i:[A-Z])[\w'-]+(?: (?-i:[A-Z])[\w'-]+)?) (?:here|speaking|from\b.*)\W*$", "your name is {v}"),
    ("name!", r"(?:this is|it'?s|it is) (?P<v>[^\W\d_].*)", "your name is {v}"),
    ("name?", r"(?P<v>(?-i:[A-Z])[\w'-]+) (?:here|speaking)\W*$", "your name is {v}"),
    ("age", rf"(?:{_I_AM}|i(?:'ve| have)?(?: just| only| already| recently)? turn(?:ed)?|my age is|aged?)(?: now| already| only| just| about| nearly(?!.))? (?P<v>\d{{1,3}}|(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)[ -]?\w*|(?:six|seven|eight|nine|thir|four|fif)teen|(?:sixteen|ten|eleven|twelve|nineteen))(?= *(?:years?|yrs?|yo\b|y/o|old|now|this|last|today|yesterday|going on|on\b|in (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)|a (?:few|couple|week|month)|lol\b|btw\b|already|\w+ ago|recently|,|$|\W*$))", "you are {v} years old"),
    ("age", rf"(?:i|i've|we) {_ADV}(?:had|celebrated|have had) my (?P<v>\d{{1,2}})(?:st|nd|rd|th) birthday\b.*", "you are {v} years old"),
    ("birthday", rf"my (?:birthday|birth ?date|date of birth|bday|b-day)(?:'s| is|:)?(?: on| in)? {_V}", "your birthday is {v}"),
    ("birthday", rf"i(?: was|'m|'was| am) born (?:on|in) (?P<v>(?:the )?(?:\d|{_MONTH}).*)", "you were born on {v}"),
    ("not allergy", rf"{_I_AM} (?:not|no longer)(?: actually| really)? allergic to {_V}", "you are not allergic to {v}"),
    ("not allergy", r"i (?:don'?t|do not)(?: actually)? have (?:an? |any )?(?P<v>[\w ]+?) allergy", "you are not allergic to {v}"),
    ("allergy", rf"(?:{_I_AM}|i get|i got|i have been|i'?ve been|i was) {_ADV}(?:allergic|intolerant)(?: reactions?)?(?: to)? {_V}", "you are allergic to {v}"),
    ("allergy", rf"i(?:'ve| have)?(?: got| have| suffer from)? {_ADV}(?:an? |have )?(?:severe |bad |serious |strong |nasty |mild |terrible )?(?:allerg(?:y|ies)|intolerance) (?:to|for|against) {_V}", "you are allergic to {v}"),
    ("allergy", rf"i {_ADV}(?:get|come out in|break out in|broke out in) (?:hives|a rash|rashes|itchy|itching|swelling) (?:from|after eating|after|when i eat|when i have|if i eat|if i touch|with) {_V}", "you are allergic to {v}"),
    ("allergy", rf"my allerg(?:y|ies)(?: is| are|:) (?:to )?{_V}", "you are allergic to {v}"),
    ("allergy", r"(?P<v>[\w -]{2,40}?) (?:makes? me|gives? me) (?:break out|itch|sneeze|swell up|hives|a rash|rashes|an allergic reaction)\b.*", "you are allergic to {v}"),
    ("allergy", r"i(?:'ve| have)?(?: got| have| suffer from)? (?:an? )?(?:severe |bad |serious |strong |nasty |mild )?(?P<v>(?!food |some |few |no )[\w-]+(?: [\w-]+)?) allergy", "you are allergic to {v}"),
    ("allergy", rf"{_I_AM} (?P<v>lactose|gluten)[ -]intolerant", "you are allergic to {v}"),
    ("not dislike", rf"i {_NOT} (?:really |actually )?(?:hate|dislike|mind) {_V}", "you don't mind {v}"),
    ("avoid", rf"i {_ADV}{_CANT} {_ADV}(?:eat|drink|have|handle|tolerate|take|stomach|digest|consume|touch|deal with|do) {_V}", "you can't have {v}"),
    ("avoid", rf"i {_ADV}(?:{_NOT}|never) {_ADV}(?:eat|drink|consume|touch|do|tolerate) {_V}", "you don't eat {v}"),
    ("avoid", rf"i (?:avoid|have to avoid|try to avoid|need to avoid|must avoid|stay away from|gave up|quit) {_V}", "you avoid {v}"),
    ("can", rf"i can(?: now| also| still)? (?:eat|drink|have|handle) {_V}", "you can have {v}"),
    ("dislike", rf"i {_ADV}(?:{_NOT}|no longer|never) {_ADV}{_LIKE}(?: eating| to eat)? {_V}", "you don't like {v}"),
    ("dislike", rf"i {_ADV}(?:{_NOT}) {_ADV}care for {_V}", "you don't like {v}"),
    ("dislike", rf"(?:{_I_AM}) (?:not|no longer) (?:really |very |so |much )?(?:a (?:big |huge |great )?(?:fan|lover) of|fond of|into|keen on|crazy about) {_V}", "you don't like {v}"),
    ("dislike", rf"i {_ADV}(?:hate|dislike|detest|loathe|despise|{_CANT} {_ADV}(?:stand|bear)) {_V}", "you don't like {v}"),
    ("dislike", r"(?P<v>(?!that\b|this\b|it\b|the\b|[\w' -]*\b(?:food|lunch|dinner|soup|weather)\b)[\w -]{2,40}?) (?:is|are)(?:n'?t| not) (?:really )?(?:my (?:thing|cup of tea)|for me)\b.*", "you don't like {v}"),
    ("like", r"(?P<v>(?!that\b|this\b|it\b)[\w -]{2,40}?) (?:is|are) (?:totally |really |so |just )?(?:my (?:thing|jam|passion))\b.*", "you like {v}"),
    ("dislike", rf"(?P<v>(?!that\b|this\b|it\b)[\w -]{{2,40}}?)[,?]? i {_ADV}(?:hate|detest|despise|{_CANT} (?:stand|bear)|{_NOT} {_ADV}like)\W*$", "you don't like {v}"),
    ("like", rf"(?P<v>(?!that\b|this\b|it\b|what\b)[\w -]{{2,40}}?)[,?]? i {_ADV}(?:love|adore|like)\W*$", "you like {v}"),
    ("like", rf"{_I_AM} an? (?!.*\bof\b){_ADV}(?:big |huge |massive |great |total |lifelong |proper )*(?P<v>[\w' -]{{2,30}}?) (?:fan|lover|addict|nerd|geek|enthusiast)\b.*", "you like {v}"),
    ("like", rf"i(?!'?d\b) {_ADV}{_LIKE} {_V}", "you like {v}"),
    ("like", rf"i(?:'ve| have) (?:always )?(?:loved|liked|enjoyed) {_V}", "you like {v}"),
    ("like", rf"(?:{_I_AM}|i(?:'ve| have) been) {_ADV}{_LIKE_BE} {_V}", "you like {v}"),
    ("like", r"(?:there'?s |there is )?nothing i (?:love|like|enjoy) more than (?P<v>.+)", "you like {v}"),
    ("like", rf"my (?:hobby|hobbies|interests?|passions?) (?:is|are|include) {_V}", "you like {v}"),
    ("not lives", rf"i {_NOT} (?:actually )?live {_V}", "you don't live {v}"),
    ("not lives", rf"i no longer live {_V}", "you don't live {v}"),
    ("lives", rf"(?:i|we)(?:'m| am|'ve| have|'re| are)? {_ADV}(?:lives?|living|reside|residing|lived|based|stay|staying|been living|located|settled)(?: now| currently| here)? (?P<v>(?:in|at|near|on|outside|by|close to|next to|just outside) .+)", "you live {v}"),
    ("lives", r"(?:i|we|my family)(?:'ve| have| just)*(?: just| recently| finally| actually)* (?:moved|relocated)(?: back| house)?(?: from .+?)?(?: here)? to (?P<v>(?!the\b|another\b|a\b|bed|work|on\b).+)", "you live in {v}"),
    ("lives", rf"{_I_AM} {_ADV}(?P<v>in (?-i:[A-Z])[\w'-]+(?:,? (?-i:[A-Z])[\w'-]+)?)(?: now| rn| atm| at the moment| these days| right now)?\W*$", "you are {v}"),
    ("lives", r"home (?:is|for me is) (?P<v>(?:in )?(?-i:[A-Z]).+)", "you live in {v}"),
    ("lives", r"my (?:home|house|flat|apartment|place) is (?P<v>(?:in|at|near|on) .+)", "you live {v}"),
    ("not from", rf"{_I_AM} not {_ADV}from {_V}", "you are not from {v}"),
    ("from", rf"(?:i|i'?m|i am|i was|i'?ve|we'?re|we are|my family is|we) {_ADV}(?:from|come from|came from|hail from|born in|born and raised in|born (?:&|n) raised in|grew up in|raised in) (?P<v>(?!work|school|home|there|here|now\b|the future|another\b|a different|(?:19|20)\d\d).+)", "you are from {v}"),
    ("diet", rf"{_I_AM} {_ADV}(?:an? )?(?P<v>(?:strict )?(?:vegetarian|vegan|pescatarian|veggie|muslim|halal|kosher|teetotal|diabetic))\b.*", "you are {v}"),
    ("work", rf"(?:i|i'm|i am) {_ADV}work(?:ing)? {_ADV}(?P<v>(?:in|at|for|with|from) .+)", "you work {v}"),
    ("job", rf"(?:i|i'm|i am|i've been|i have been) {_ADV}(?:work|working|employed) {_ADV}as {_V}", "you work as {v}"),
    ("job", rf"i(?:'ve| have)?(?: just| recently)? (?:got|have|found|started|landed)(?: got)? (?:an? |my )?(?:new |first |part[- ]time |full[- ]time |summer |weekend |saturday )*(?:job|gig|work|position) as {_V}", "you work as {v}"),
    ("job", rf"my (?:job|profession|occupation) is {_V}", "your job is {v}"),
    ("study", rf"(?:i|i'm|i am) {_ADV}(?:study|studying|majoring in|major in) {_V}", "you study {v}"),
    ("job?&from", rf"{_I_AM} {_ADV}(?P<v>an? .+?),? (?:originally )?from (?P<w>.+)", "you are {v}"),
    ("job?", rf"{_I_AM} {_ADV}(?P<v>an? .+)", "you are {v}"),
    ("pet", rf"(?:i|we)(?:'ve| have)?(?: also)?(?: got| have| own| keep| adopted| just got)? (?:an? |one |this )?(?P<p>)(?:[\w-]+ ){{0,2}}?(?P<k>{_PETS})(?:,? (?:that is |which is |who is |that's |who's |and (?:his|her|its) name is |and (?:he|she|it)(?:'s| is) )?(?:called|named|whose name is|by the name of)?|,|:| -)? (?P<v>(?-i:[A-Z])[\w'-]+|(?<=called )[\w'-]+|(?<=named )[\w'-]+|(?<=name is )[\w'-]+)\W*$", "your {k} is called {v}"),
    ("attr name", r"(?:i|we)(?:'ve| have)?(?: also)?(?: got| have)? (?:an? |one )(?:[a-z]+ )??(?P<k>[a-z]+) (?:called|named|whose name is|by the name of) (?P<v>[\w'-]+)", "your {k} is called {v}"),
    ("not have", rf"i (?:don'?t|do not|no longer) have (?:an? |any )?{_V}", "you don't have {v}"),
    ("have", r"(?:i|we)(?:'ve| have)?(?: also| only)?(?: got| have| own) (?P<v>(?:an? |one |two |three |four |five |six |seven |\d+ |many |some |twin )(?!on\b|in\b|out\b|points|percent|mins?\b|minutes|hours|question|problem|lot|bit|few|request|idea|feeling|headache|cold|look|nice|good|great|test|exam|quiz|meeting|class|lesson|\d+ (?:on|in|out)|\d+\W*$|\d (?:in|on|out)).+)", "you have {v}"),
    ("attr:surname", r"my (?:last|family|sur) ?name(?:'s| is|:)? (?P<v>.+)", "your surname is {v}"),
    ("attr:nickname", r"my nick ?name(?:'s| is|:)? (?P<v>.+)", "your nickname is {v}"),
    ("attr name", r"my (?P<k>[a-z][\w-]*(?: [a-z][\w-]*){0,2}?)(?:'?s)? name(?:'s| is|:| was) (?P<v>.+)", "your {k}'s name is {v}"),
    ("attr name", rf"(?:my|our) {_K}(?: is|'s|'?s| are|) (?:called|named) {_V}", "your {k} is called {v}"),
    ("attr name", r"the name of my (?P<k>[a-z][\w-]*(?: [a-z][\w-]*){0,2}?) is (?P<v>.+)", "your {k} is called {v}"),
    ("attr name?", r"my (?P<k>(?:best |older |elder |younger |little |big |twin )?(?:brother|sister|wife|husband|son|daughter|friend|boss|teacher|mother|father|mum|mom|dad|cousin|uncle|aunt|girlfriend|boyfriend|cat|dog|roommate|neighbou?r|colleague|partner)),? (?P<v>(?-i:[A-Z])[\w-]+)\b.*", "your {k} is called {v}"),
    ("not attr", rf"my {_K}(?: is not| isn'?t|'s not| are not| aren'?t) {_V}", "your {k} is not {v}"),
    ("attr", rf"my {_K}(?: is|'s| are|:| =| has to be| would be| has always been| must be) {_V}", "your {k} is {v}"),
    ("attr", rf"(?P<k>(?:favou?rite|fave?) (?!thing about)[a-z][\w-]*(?: [a-z][\w-]*)??)(?: is|'s| are|:| =| has to be| would be| -|,) {_V}", "your {k} is {v}"),
    ("attr", r"(?P<v>[\w' -]{1,40}?)(?: is|'s| are) (?:also )?my (?P<k>[\w' -]{2,40})\W*$", "your {k} is {v}"),
    ("dislike", r"no (?P<v>(?:chill?i(?:es)?|spicy .*|spice|onions?|garlic|peanuts?|nuts?|coriander|cilantro|meat|pork|beef|fish|eggs?|celery|tomato(?:es)?|potato(?:es)?)\b.*)", "you don't want {v}"),
    ("avoid", r"(?:nothing|not too|not|without) (?P<v>(?:spicy|hot|chill?i(?:es)?|spice)\b(?!.*\b(?:today|news|outside)).*)", "you want nothing {v}"),
    ("attr:year", rf"(?:i'?m|i am) {_ADV}in (?P<v>(?:(?:year|grade) \w+|(?:form|class) \d+\w?)\b|(?:my )?(?:\w+(?:st|nd|rd|th)|first|second|third|final|last|senior|junior|freshman|sophomore) (?:year|grade)\b.*)", "you are in {v}"),
    ("does", rf"i {_ADV}(?P<k>{_VERBS}) {_V}", "you {k} {v}"),
    ("does", rf"(?:{_I_AM}|i(?:'ve| have) been) {_ADV}(?P<k>learning|studying|saving|looking for|playing|reading|writing|planning|training for|training|watching|preparing for|working on|saving for|teaching|building|getting|flying to|going to|travell?ing to|visiting|married to|engaged to|afraid of|scared of|terrified of|saving up for|hoping to be|training to be|training to become|studying to be(?:come)?) {_V}", "you are {k} {v}"),
)  # fmt: skip
STATEMENTS = tuple((kind, re.compile(pattern, re.I), say) for kind, pattern, say in _TABLE)

LEAD = re.compile(  # how a statement can begin; nothing else is worth trying
    r"(?:our\b|home\b|there|fav|you'?re\b|you are\b|can'?t|cannot|usually|always|most|at school|.{2,40} (?:makes?|gives?) me|.{2,40} (?:is|are|isn'?t|aren'?t)\b.{0,16} (?:thing|jam|passion|me|tea)\b|.{2,40}[,?]? i\b.{0,30} (?:hate|detest|despise|stand|bear|like|love|adore)\W*$|i\b|i'|im\b|ive\b|my\b|we\b|we'|the\b.{0,12}\bname|name|call|u can|you can|you may|you should|please|just|everyone|everybody|people|friends|they|most people|all\b|don'?t|do not|stop|never"
    r"|this is|it'?s|it is|it should|aged?\b|no\b|not\b|nothing|without|that should|make|rather|.{1,40}(?:\bis|\bare|'s) (?:also )?my\b|.{1,40} (?:is|are) (?:not|disgusting|gross|yucky)|[A-Z][\w'-]+ (?:here|speaking))",
    re.I,
)
_META = (
    r"(?:can|could|will|would) you (?:please |kindly )?(?:remember|note|memori[sz]e|keep in mind|save|write down|store)(?: (?:that|the fact that|this:?))? "
    r"|(?:please )?(?:remember|note|memori[sz]e|keep in mind|save|store|don'?t forget|do not forget|bear in mind)(?: down)?(?: (?:that|the fact that|this|for later))?:? "
)
REQUEST = re.compile(
    rf"(?:\W*(?:hi|hello|hey|ok|please|and|so)\W+)*(?:{_META})(?!what|who|where|when|how|which|why)", re.I
)
FILLER = re.compile(
    rf"(?:(?:ngl|ugh+|lol|lmao|haha+|tho|imo|heads up|omg|aw+|yea|yup|ya|alright|right|look|listen|basically|honestly though|not gonna lie|not going to lie|fun fact|random fact|to be fair|tbf|guess what|greetings|yo+|heyy+|jk|just kidding|not anymore|turns out(?: that)?|it turns out(?: that)?|apparently|(?:i )?(?:just |recently )?(?:found out|learned|discovered)(?: (?:last|this) \w+| recently| yesterday| today)?(?: that)?|sup|wassup|what'?s up|the (?:test|doctors?|tests) (?:showed|says?|said)(?: that)?|(?:i'?d|i would) say(?: that)?|literally|anyway|anyways|obviously|of course|speaking of which|coincidentally|funny enough|oh yeah|oh and|hi+|hello+|hey+|yo|typo|in my (?:free|spare) time|on weekends|at weekends|hiya|well|so|ok|okay|oh|um+|uh|and|but|also|actually|btw|by the way|please|no(?=[,.!;:]| i\b| my\b| it)|nope|sorry|yes|yeah|yep|fyi|"
    r"hey there|hi there|hello there|good (?:morning|afternoon|evening)|just so you know|you know(?: that)?|i think(?: that)?|i guess|i believe|i mean(?= i| my)|"
    r"in fact|to be honest|honestly|tbh|note that|for your information|let me introduce myself|nice to meet you|let me tell you(?: that)?|"
    r"i(?:'d| would) like you to (?:know|remember|note)(?: that)?|i want you to (?:know|remember)(?: that)?|i should (?:say|mention|tell you)(?: that)?|"
    r"i(?:'d| would) like to (?:add|mention|say|tell you)(?: that)?|i (?:have|need|want) to tell you(?: that)?|i forgot to (?:say|mention|tell you)(?: that)?|"
    r"as you know|because|since|cause|though|although|while|then|now|too|there(?!')|everyone|all|again|wait|oops|correction|my mistake|my bad|scratch that|"
    r"a (?:few|couple of) things about me|about me|one more thing|first of all|firstly|secondly|first|second|finally|lastly|next|however|"
    rf"my (?:doctor|dentist|gp) (?:says|said|told me)(?: that)?|the doctor (?:says|said|told me)(?: that)?|unfortunately|sadly|luckily|fortunately|today|these days|nowadays|currently|at the moment|personally|{_META.replace(' |', '|')[:-1]})\b[\s,:;!.\-–—]*){{1,6}}",
    re.I,
)
_VERB_START = (
    r"(?:(?:really |also |absolutely |currently |now |especially )*(?:like|love|live|hate|enjoy|work|come from|can'?t|cannot|don'?t|do not|prefer|play|speak|have|study|dislike|"
    r"am|allergic to|obsessed with|born|was born|detest|adore|avoid|never eat|drive|own|collect|used to|would|will|want|need|eat|drink|grew up|moved to))\b"
)
SPLIT = re.compile(
    r"(?<!\bmr)(?<!\bdr)(?<!\bms)(?<!\bmrs)[.!;…]+(?=\s|$)|\n|\s[-–—]+\s|(?<=[?])\s|(?<=\bstudent)\s+(?=studying\b)"
    r"|,?\s*\b(?:and|but|so|because|while|although|though|yet|whereas|plus|then|also|cause|cuz|bc|however)\b,?\s+(?=(?:also |now |currently |actually |honestly |tbh |apparently |turns out |it turns out |lately |recently |by the way,? |btw,? )*(?:i|i'?m|my|call|you can|i'?ve|we|it's|he|she|his|her|they|their|what|where|who|how|do|can|could|please)\b)"
    rf"|(?:,\s*(?:and|but)?|\s+and|\s+but|\s&)\s+(?={_VERB_START})"
    r"|(?<!not)\s*,\s*(?=(?:and |but |so |also |though |or |btw |by the way |now )*(?:i|i'?m|my|it's|it is|i'?ve|call me|not|no|what|where|who|how|which|can|could|do|does|please|nice|hello|hi|hey|lol|he|she|his|her|they|from|allergic|thanks?|thank|right|correct|aged?|isn't|a|an|and you|you|living|your|originally|actually|sorry|we|\d+)\b)",
    re.I,
)
PAST = re.compile(
    r"(?:i (?:used to|once|formerly|previously)\b|i (?:was|had been|lived|worked|liked|loved|hated) .*\b(?:when i was|as a (?:child|kid)|ago|back then|in the past|before)\b|in the past|when i was)",
    re.I,
)
SUBJECT = "I "  # a clause that begins a message without a subject, and plainly speaks of its writer
DROPPED_FIRST = re.compile(
    r"(?:really |absolutely |just |honestly |also |lowkey |totally |only |recently |still |currently )*(?:(?:love|adore|hate|detest|despise|enjoy|dislike|prefer|can'?t (?:stand|bear|get enough of|live without|eat|drink|have|do(?= (?:dairy|gluten|spicy|spice|nuts|lactose|caffeine|sugar)))) (?!it\b|to\b|this\b|that\b|you\b|when\b|how\b|from\b|is\b|at\b|them\b|him\b|her\b|u\b|for\b)"
    r"|(?:a )?(?:big |huge |massive |great |not a |not a big |not much of a )*fan of|(?:really |super |so |very |big |well )+into |not (?:really |that )?(?:into|keen on|fond of)|obsessed with|allergic to|lactose intolerant|born and raised|born in|based in|living in|originally from|turned \d|turned \w+teen|(?:got|have|started) an? .{0,20}job as|works? as an?\b|working as an?\b|studying|vegan\W*$|vegetarian\W*$|(?:(?:just|recently) )?moved to (?-i:[A-Z])|live in (?-i:[A-Z])|got an? (?:dog|cat|puppy|kitten|hamster))",
    re.I,
)
DROPPED = re.compile(
    rf"(?:{_VERB_START}|from \w|an? \w|studying \w|living in|originally from|based in|allergic to|born (?:in|on)|aged? \d|\d+ years old|\d{{1,2}}\W*$|not (?:a |very |so )?\w)",
    re.I,
)
_AM_START = re.compile(
    r"(?:also )?(?:(?:really |absolutely |totally |also |super |so |very |well )*(?:obsessed|into|(?:big |huge |massive |great )*fan of|not (?:a|really|that|into|keen|fond|much)|lactose|studying|working)|from|an?|living|originally|based|allergic|aged?|\d+|not|born|vegetarian|vegan|married)\b",
    re.I,
)
GOES_ON = re.compile(r"\b(?:but|and|because|so|though|although|cause)\s*$", re.I)  # before somebody else's words
AGAINST = re.compile(r"(?:and |but )?(?:not|rather than|instead of) ", re.I)
CHATTER = re.compile(  # words that no item of a list has: talk goes on
    r"\b(?:i|i'?m|i'?ve|it|it's|its|they|he|she|we|you|u|me|us|him|that|this|there|who|which|what|is|are|was|were|been|be|being|has|had|have|does|did|don'?t|didn'?t|can|can'?t|could|will|would|should|won'?t|so|very|too|really|always|never|just|still|lol|lmao|haha+|tbh|btw|ngl|imo|though|every|last|since|ever|because|cause|cuz|if|when|while|where|how|sorry|thanks?|please|yum+|yay|ugh|omg|xd|same|mostly|mainly|especially|obviously|honestly|literally|saw|went|got|made|took|bought|ate|love|hate|know|think|hope|wish|guess|mean|late|fine|ok|okay|today|tonight|tomorrow|yesterday|now|rn|atm|again|already|yet|lovely|nice|great|cool|cute|funny|weird|crazy|right|isn'?t|aren'?t|short for|times|raining|snowing|freezing|boiling|hot today|cold|boring|worst|best|true|false|wrong|over|done|gone|broken|dead|only|almost|allergic|allergy|monday|tuesday|wednesday|thursday|friday|saturday|sunday|christmas|birthday|minutes?|mins?|pm|am|o'?clock|nothing|whatever|wifi|turn|weird|mess|complicated|calling|talking)\b",
    re.I,
)
FIRST_PERSON = re.compile(r"\b(?:i|i'm|my|me|i'd|i've)\b", re.I)
BLOCKED = re.compile(
    r"^\W*(?:and |but |so |well,? )*(?:if (?!you (?:want|need|must|don't mind|'?re wondering|are wondering|wonder)|i remember)|suppose|imagine|pretend|let'?s (?:pretend|say|imagine)|in case|unless|what if|translate|how (?:do|would|can) (?:you|i) say|say:|repeat|"
    r"were i\b|had i\b|i (?:wish|dreamt|dreamed|pretend)\b|once upon|in (?:the|my) (?:story|novel|book|film|movie|dream|game))"
    r"|\b(?:he|she|they|someone|somebody|people|everyone|everybody|nobody|who|brother|sister|mother|father|mum|mom|dad|friend|teacher|boss|wife|husband|colleague|neighbou?r|character|hero|man|woman|guy|girl|boy|song|sign|book|(?!doctor|dentist|physician)[A-Z][a-z]+)"
    r" (?:just |once |always |also |often |keeps? |jokingly |wrongly |mistakenly )*(?:said|says|saying|told (?!you)|tells (?!you)|claims?|claimed|wrote|writes|shouted|asked|asks|replied|thinks?|thought|believes?|introduced|goes|texted|joked|answered|announced|whispered|sings?|sang|reads|read)\b"
    r"|\bwould be (?:called|named)|\bif i (?:were|was|had|lived|could)\b|\bi(?:'d| would) (?:be|live|like to be|love to be)\b|\bpretend|\bas if\b|\bfor example\b|\baccording to\b|\bwith the words\b|\bnot true that\b|\b(?:the|this) (?:sentence|phrase|line|quote)\b"
    r"|\bi (?:said|wrote|told (?:him|her|them))\b",
    re.I,
)  # fmt: skip
QUESTION = re.compile(
    r"\?\W*$|^\W*(?:and |but |so |ok |please )*(?:what|what'?s|where|where'?s|who|who'?s|when|which|why|how|do|does|did|am|is|are|can(?!')|could|would|will|have you|should|whats|wheres|guess|"
    r"(?:can you |please )?(?:tell me|remind me|say|name) (?:again )?(?:my|what|where|who|how|when|which|about|something|if|whether|everything|all)|i forgot (?:my|what|where|who|how)|i wonder|i want to know|i don'?t (?:know|remember) (?:my|what|where|who|how)|i'?m (?:wondering|asking))\b",
    re.I,
)  # fmt: skip
TAG = re.compile(
    r"\W*(?:right|correct|isn'?t it|aren'?t i|is that (?:right|correct|true)|true or false|yes or no|don'?t i|no|huh|is it|or not|am i right)\W*\?\W*$",
    re.I,
)
SUBJECT_I = re.compile(
    r"\W*(?:i\b|i'|im\b|ive\b|(?:my |the )?name(?:'s| is)|this is [A-Z]|it'?s me\b|my name|call me|you can call me|the name)",
    re.I,
)
SUBJECT_OTHER = re.compile(
    r"\W*(?:he|she|they|we|it|this|that|there|his|her|their|my|our|your|you|[A-Z][a-z]+)\b", re.I
)

_SWAP = {
    "you are": "I am", "you're": "I'm", "you were": "I was", "your": "my", "yours": "mine", "yourself": "myself", "you": "I", "you've": "I've",
    "are you": "am I",
}  # fmt: skip
_SWAP_RE = re.compile(r"\b(you are|are you|you're|you were|yourself|yours|your|you've|you)\b", re.I)
_ACK = re.compile(
    r"(?:noted|got it|okay|ok|yes|no|understood|great|sure|nice|thanks|i(?:'ll| will) remember(?: that)?|as far as i (?:know|can see)|you (?:told me|said|mentioned)(?: that)?)\b[\s,:.!—-]*",
    re.I,
)
_THIRD = re.compile(r"\bthe user(?:'s| is| was| has| can't| cannot| doesn't| does not| can|)(?= )", re.I)
_THIRD_TO_FIRST = {"the user's": "my", "the user is": "I am", "the user was": "I was", "the user has": "I have", "the user doesn't": "I don't", "the user does not": "I do not", "the user": "I", "the user can't": "I can't", "the user cannot": "I cannot", "the user can": "I can"}  # fmt: skip
VOCATIVE = re.compile(
    r"^\W*(?:(?i:hi|hello|hey|nice to meet you|pleased to meet you|welcome(?: back)?|good to see you|thanks|thank you)),? (?P<v>[A-Z][\w'-]+(?: [A-Z][\w'-]+)?)\W*$"
)


_JOIN = re.compile(
    r"(?P<a>\b(?:have|got|own|adopted) (?:an?|one) [a-z ]{2,25}?),? (?:and )?(?:(?:his|her|its|their) name(?:'s| is| was)|(?:he|she|it)(?:'s| is) (?:called|named)|(?:i|we) (?:call|called|named) (?:him|her|it)) ",
    re.I,
)


_GREETED = re.compile(
    r"\W*(?:hi+|hello|hey+|yo|hiya|good (?:morning|evening|afternoon))\b[ ,!.]*(?:guys|all|everyone|there)?[ ,!.]*(?P<it>(?:it'?s|this is) )(?=(?-i:[A-Z]))",
    re.I,
)
_FELT = re.compile(  # "broccoli is gross, I hate it", "nothing beats a good curry, I love it"
    r"(?:^|(?<=[,.!] ))(?:nothing beats |you know )?(?P<v>(?!i\b|i'm\b|it\b|that\b|this\b|he\b|she\b|they\b|my\b|the\b|what\b|there\b)[\w' -]{2,30}?)(?: (?:is|are|tastes?|smells?|makes?)\b[^,.!]{2,30})?[,.!?—–-]+ (?:and |because |but |honestly |yeah |oh |man |god )*(?:i )?(?:really |just |absolutely |so |totally |do )*(?P<do>love|hate|adore|detest|despise|can'?t stand|don'?t like) (?:it|them|that stuff)(?: so much| lol| haha| tbh| honestly)?\W*$",
    re.I,
)
_ALLERGIC = re.compile(  # "I can't eat nuts, allergic": what the allergy is to stands before it
    rf"(?:\b{_CANT} (?:have|eat|drink|touch)|\b(?:don'?t|never) (?:eat|drink)|\bno) (?P<v>[\w' -]{{2,40}}?)(?: for me)?(?: please)?(?:[,;.!—–-]+ ?|,? (?:because|cause|cuz|bc|as|since) )(?:(?:i'?m|i am|i have an|it'?s an|i've got an) )?(?:\w+ )?(?:allergic|allergy)(?: to (?:it|them|that|those))?\W*$",
    re.I,
)


def joined(sentence: str) -> str:
    """ "I have a dog, his name is Rex" -> "I have a dog called Rex": the name goes to the dog."""
    greeted = _GREETED.match(fold(sentence))
    if greeted:
        sentence = sentence[: greeted.start("it")] + "I'm " + sentence[greeted.end() :]
    felt = _FELT.search(fold(sentence))
    if felt:
        sentence = f"{sentence[: felt.start()]}I {felt['do']} {sentence[felt.start('v') : felt.end('v')]}"
    because = _ALLERGIC.search(fold(sentence))
    if because:
        sentence = f"{sentence[: because.end('v')]}. I'm allergic to {sentence[because.start('v') : because.end('v')]}"
    match = _JOIN.search(fold(sentence))
    return sentence[: match.end("a")] + " called " + sentence[match.end() :] if match else sentence


_RUN_ON = re.compile(
    r"(?:my name(?:'s| is)?|i'?m|i am) [\w'-]+(?= (?:i'?m (?:from|allergic|an?|\d)|i am (?:from|allergic|an?|\d)|i (?:live|like|love|hate|work|come|don'?t)|my )\b)",
    re.I,
)


def split_more(clause: str) -> list[str]:
    """ "my name is bob i like tea" -> two clauses: statements run together without a comma."""
    match = _RUN_ON.match(fold(clause))
    return [clause[: match.end()], clause[match.end() + 1 :]] if match else [clause]


def second_to_first(sentence: str) -> str:
    """ "You are called Anna" -> "I am called Anna"; "" for what the assistant says of itself."""
    sentence = _ACK.sub("", sentence, count=1) if _ACK.match(sentence) else sentence
    if FIRST_PERSON.search(fold(sentence)) or not _SWAP_RE.search(fold(sentence)):
        return ""
    return _SWAP_RE.sub(lambda m: _SWAP[m.group().lower()], fold(sentence))


def third_to_first(sentence: str) -> str:
    """ "The user likes tea" -> "I like tea"; "" for any other sentence."""
    if not _THIRD.search(fold(sentence)):
        return ""
    swapped = _THIRD.sub(lambda m: _THIRD_TO_FIRST[m.group().lower()], fold(sentence).lstrip("-*• "))
    return re.sub(r"^I ([a-z]+?)(?:s)\b(?<!is)(?<!was)", r"I \1", swapped)


LABELS = {"name": "name", "likes": "like", "dislikes": "dislike", "allergies": "allergy", "allergic to": "allergy", "can't have": "avoid", "lives": "lives", "comes from": "from", "job": "job", "works": "work", "age": "age", "birthday": "birthday", "diet": "diet"}  # fmt: skip
SAY = {"name": "your name is {v}", "like": "you like {v}", "dislike": "you don't like {v}", "allergy": "you are allergic to {v}", "avoid": "you can't have {v}", "lives": "you live in {v}", "from": "you are from {v}", "job": "you are {v}", "work": "you work {v}", "age": "you are {v} years old", "birthday": "your birthday is {v}", "diet": "you are {v}"}  # fmt: skip
LISTED = re.compile(rf"\s*[-*•]\s*(?P<label>{'|'.join(LABELS)}): *(?P<v>.+)", re.I)
POSSESSIVE: dict[str, str] = {}

# What follows "I'm" and is no name, in lower or upper case.
NOT_NAMES = frozenset(
    """
    a an the not very really so too quite just tired happy sad hungry thirsty fine good great ok okay well
    bored busy sick ill angry here there back home sorry sure afraid ready done new old young late early
    lost in on at from to of with for and but if what who where when how why which that this it he she they
    we i my your his her their our yes no never always now still currently also allergic vegetarian vegan
    pescatarian french german english russian chinese american british spanish italian japanese korean
    indian canadian australian ukrainian polish turkish brazilian mexican dutch swedish swiss irish scottish
    muslim christian jewish buddhist catholic european asian african monday tuesday wednesday thursday
    friday saturday sunday january february march april june july august september october november december
    today tomorrow yesterday looking going doing trying learning living working studying thinking wondering
    asking called named known like about kind nobody nothing someone something anything everything beautiful
    nice cool interesting important funny hard difficult easy long short tall small big free single married
    divorced engaged pregnant retired unemployed broke excited nervous scared worried confused curious
    interested glad pleased impressed surprised sleepy exhausted cold hot warm better worse best awesome
    amazing perfect weird strange only almost already please thanks thank hello hi hey right wrong true
    false correct good more less much many all some any none one two three four five six seven eight nine
    ten unknown secret private anonymous common rare spelled pronounced written because since is was are
    were am be been being do does did has have had can could will would should teacher student doctor
    engineer nurse programmer developer human person man woman boy girl you me us them him assistant bot ai
    model robot chatbot raining sunny time day night morning later soon back whenever maybe anytime if once
    twice again crazy stupid lazy weird tonight early asap immediately lucky names lactose gluten diabetic
    intolerant intolerant passionate fond keen into crazy tea coffee spicy mine ours overwhelmed feeling
    having making getting taking stressed ashamed proud jealous lonely alone online offline outside inside
    upstairs downstairs okay-ish alright stuck blind deaf left-handed right-handed vegetarians starving
    freezing team mum mom dad christmas easter halloween mummy daddy grandma grandpa everybody everyone nearly whatever oops typo
    """.split()  # noqa: SIM905
)  # fmt: skip
_TITLES = ("dr.", "mr.", "mrs.", "ms.", "prof.", "dr", "mr", "mrs", "ms", "miss", "sir")
_COMMON_NAMES = frozenset(
    """
    anna ann anne alice bob bobby tom tommy john johnny jack james mary maria mike michael david dave daniel
    dan emma olivia sophia sophie sarah sara lisa linda kate katie katherine jane jenny jennifer jessica
    julia julie laura lucy peter paul mark matt matthew luke george harry william will bill charlie charles
    chris christopher alex alexander alexandra max sam samuel samantha ben benjamin nick nicholas oliver leo
    lily lucas liam noah ethan mia ava ella grace chloe eva eve nina olga oleg ivan igor dmitry natasha
    natalia sergey sergei elena lena irina ira tanya tatiana vladimir boris svetlana ksenia masha misha
    katya yulia andrey andrew amy amanda andrea angela anthony tony ashley barbara betty brian carol carlos
    carla daisy diana donna dylan eric erik frank fred gary helen henry ian isabella jason jeff joe joseph
    juan jose karen kevin kim kyle larry li lei wei ming zhang wang chen ying yan mei hua xiaoming xiao hans
    klaus marco luca pierre marie jean ahmed ali fatima mohammed omar aisha priya raj ravi yuki hana ken
    kenji sakura minji nancy nora patricia rachel rebecca richard robert rob roger ron rose ruby ryan scott
    sean simon stella stephen steve steven susan thomas tim tina victor victoria vera walter wendy zoe zara
    artem anton denis maxim roman pavel polina daria dasha alina liza lara rita
    """.split()  # noqa: SIM905
)
_NAME_END = re.compile(r"\s+(?:and|but|from|by|please|here|too|btw|thanks|nice|who|which|because|so|or|not|in|at|on|if|now|though|with|as|i|my|what|where|how|can|you|lol|haha|for|instead|again|actually|speaking|the|a|an|is|like|are|dude|bro|mate|aged|live|love|work)\b.*", re.I)  # fmt: skip
_PLACE_END = re.compile(
    r",? \b(?:and|but|with|now|since|for (?:\d|a|the|many|some|several|\w+ years)|because|where|which|but|at the moment|right now|these days|currently|anymore|any more|any longer|together|by myself|alone|originally|as well|too|though|when|so|after|before|until|last|this|\d+ years)\b.*",
    re.I,
)
_TAIL = re.compile(r"(?:[ ,]+(?:too|as well|very much|a lot|so much|the most|the best|most|best|more than anything(?: else)?|btw|by the way|please|thanks|thank you|lol|haha+|now|at the moment|right now|these days|currently|you know|though|ok|okay|at all|anymore|any more|i think|actually|as you know|unfortunately|really|remember that|:\)+|:d|xd|instead|in general|either|and so on|etc\.?|today|this year|already|though|if that helps|for your information|either|mate|man|dude|yay|always|still|sadly|much|tbh|ngl|honestly|fr|rn|atm|imo|lmao|omg|haha|lately|obviously|of course|to be honest|to be fair|tbf|not gonna lie|yeah|here|x+|innit|literally|all the time|every (?:single )?day|so far|alot|like crazy|loads|tho|sorry|if you must know|for sure|last (?:week|month|year|summer|night)|in (?:january|february|march|april|june|july|august|september|october|november|december)))+$|(?:\s+(?:because|since|when|while|whenever|so please|so you|so i|so don't|as i|as it|but|which|if|and (?:i|you|he|she|they|we|it)|even though|in case|do you|can you|could you|what|ever since) .*)$", re.I)  # fmt: skip
_REJECTED = re.compile(r",? (?:and )?(?:not|rather than|instead of) (?P<v>.+)$", re.I)
_CONTRAST = re.compile(r"^(?P<no>.+?),? (?:but|it'?s|it is|i'?m|rather) (?P<yes>.+)$", re.I)
_JOB_END = re.compile(
    r",? (?:and|but|with|who|which|from|living|at|in|for|by|based|so|because|since|working|that|currently|now|here|looking) .*",
    re.I,
)
_NOT_JOBS = re.compile(
    r"\b(?:person|fan|lover|owl|man|woman|girl|boy|human|bit|little|lot|bird|big|huge|father|mother|parent|beginner|foodie|wreck|mess|native|morning|few|member|user|customer|friend|idiot|genius|virgo|leo|aries|taurus|gemini|libra|scorpio|pisces|model|assistant|ai|llm|chatbot|bot|vegetarian|vegan|while|year|brother|sister|twin|good|bad|great)\b",
    re.I,
)
LEAD_IN = re.compile(
    r"^(?:(?:to |the |a |an |some |any |all |in |at |near |on |my |eating |eat |drinking |drink |having |have |spicy(?= food))\s*)+",
    re.I,
)


def clean(kind: str, value: str) -> tuple[str, str]:
    """The value without its tail, and a value it rejects ("coffee, not tea" -> ("coffee", "tea"))."""
    value, rejected = value.strip(), ""
    if kind in ("name", "attr name", "pet"):
        value = _NAME_END.sub("", value.split(",")[0].split(" (")[0])
    elif kind in ("lives", "from", "work"):
        value = _PLACE_END.sub("", value)
    elif kind == "job":
        value = _JOB_END.sub("", value.split(",")[0])
    turned = _REJECTED.search(value) if kind != "note" else None
    if turned:
        value, rejected = value[: turned.start()], trim(turned["v"])
    for _ in range(3):
        value = _TAIL.sub("", trim(value))
    return trim(value), rejected


def is_name(value: str, strict: bool | str) -> bool:
    """Whether words can be a name; `strict` (after a mere "I'm") wants a capital or a well-known name."""
    words = [word for word in value.split() if word.lower() not in _TITLES]
    if not 1 <= len(words) <= 4 or any(fold(word).lower().strip(".") in NOT_NAMES for word in words):
        return False
    if any(not re.fullmatch(r"[^\W\d_][\w'’.\-]*", word) for word in words) or len(value) > 40:
        return False
    if strict == "!":
        return all(word.lower() in _COMMON_NAMES for word in words[:1])
    if strict:
        capital = (
            bool(words)
            and all(word[0].isupper() or not word[0].isascii() for word in words)
            and not (value.isupper() and len(value) > 3)
        )
        return (capital and not words[0].lower().endswith("ing")) or all(w.lower() in _COMMON_NAMES for w in words)
    return True


def is_valid(kind: str, value: str, strict: bool | str) -> bool:
    """A last look at a value, by kind; `strict` where the pattern alone proves little ("I'm ...")."""
    if kind in ("name", "attr name", "pet"):
        return is_name(value, strict)
    if kind == "job":
        return len(value.split()) <= 5 and not (strict and _NOT_JOBS.search(value)) and "team" not in value
    if kind in ("attr", "have", "does", "study") and (
        _FLEETING.match(value) or (kind in ("does", "study") and _HERE_AND_NOW.match(value))
    ):
        return False
    if kind in ("like", "dislike", "avoid") and re.search(
        r"\b(?:this|that) is\b|^(?:where|another|your|said|u|anything|nice things|everything|nothing)\b", value, re.I
    ):
        return False
    if kind in ("like", "dislike", "attr", "allergy", "avoid", "can", "it"):
        return (
            not re.match(
                r"(?:it|that|this|them|him|her|you|when|how|what|the way|to (?:know|ask|order|have|see)|if|not|there|here|us|these|those|your|so|very|(?:ok|okay|fine|true|right|correct)\W*$)\b(?! (?:is|are) )",
                value,
                re.I,
            )
            and len(value.split()) <= 12
        )
    return True


_FLEETING = re.compile(  # what is so now, and no fact about anybody
    r"(?:so|too|very|really|such|still|always|already|about to|out of|on fire|not|killing|dead|late|tired|broken|sick|annoying|ready|done|over|gone|here|there|fine|ok|okay|asleep|loud|cold|hot|wet|empty|full|slow|down|off|lost|missing|sore|bad|good|great|awesome|amazing|awful|terrible|rubbish|the (?:best|worst)|like|being|acting|getting|going|making|dying|doing|hurting|calling|shouting|yelling|crashing|freezing|lagging|raining|cooking|coming|driving|sleeping|barking)\b"
    r"|.*\b(?:today|tonight|tomorrow|yesterday|right now|this (?:morning|afternoon|evening|week)|next|later|in \d+ min\w*|another (?:bite|one|minute|word)|going|said)\b",
    re.I,
)
_HERE_AND_NOW = re.compile(
    r"(?:go|sleep|eat|leave|cry|scream|die|pee|know|see|be|get (?:home|out)|in my room|home|hard|late|for (?:a|the|my) (?:test|exam)s?)\b",
    re.I,
)


_KEY_KIND = {
    "job": "job",
    "profession": "job",
    "occupation": "job",
    "hometown": "from",
    "home town": "from",
    "age": "age",
    "address": "address",
}


def key_of(kind: str, key: str) -> str:
    """An attribute's key in one spelling: "Brother's" -> "brother", names marked: "brother name"."""
    key = fold(key).lower().strip()
    key = (
        re.sub(r"\bfave?\b", "favorite", key)
        .replace("favourite", "favorite")
        .replace("colour", "color")
        .replace("grey", "gray")
        .replace("theatre", "theater")
        .replace("maths", "math")
        .replace("last name", "surname")
        .replace("family name", "surname")
        .replace("mum", "mom")
        .replace("neighbour", "neighbor")
        .replace("'s", "")
        .replace("bday", "birthday")
    )
    return f"{key} name" if kind in ("attr name", "pet") else key


_PREPOSITION = re.compile(r"(?:in|at|near|on|outside|by)\b", re.I)


def like_before(before: str, value: str) -> str:
    """A correction's value in the frame of the value it corrects: "Leeds" after "in York" -> "in Leeds"."""
    lead = _PREPOSITION.match(before)
    return f"{lead.group()} {value}" if lead and not _PREPOSITION.match(value) else value


def kind_of(kind: str, key: str) -> str:
    """Attributes that are facts of a known kind ("my hometown is ...") join it."""
    if kind == "attr":
        return _KEY_KIND.get(key, "attr")
    return "attr" if kind in ("attr name", "pet") else kind


def subject_of(clause: str, before: str) -> str:
    """The subject to put before a clause that drops it: "I ", "I am ", or "" after somebody else."""
    if SUBJECT_I.match(clause):
        return "I "
    return "" if SUBJECT_OTHER.match(clause) else before


def restore(subject: str, clause: str) -> str:
    """ "From Paris" after "I'm Anna" -> "I am from Paris"."""
    clause = clause[:1].lower() + clause[1:]
    return ("I am " if _AM_START.match(clause) else subject) + clause
