"""What the model knows about dishes: a table of seven, and a guess from the words for any other."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memlab.offline.chat_model.text import fold


@dataclass(frozen=True)
class Dish:
    """A dish on the menu: `kind` is "meat" (荤; eggs count) or "veg" (素)."""

    name: str
    kind: str
    spicy: bool
    words: str = ""  # ingredients, for allergies, dislikes and tastes


_KNOWN = (
    # kind, spicy, names, ingredients
    ("meat", True, ("辣椒炒肉", "Stir-fried pork with chilli", "Свинина с перцем чили"), "猪肉 肉 辣椒 pork meat chilli свинина мясо перец"),  # noqa: E501
    ("meat", True, ("剁椒鱼头", "Fish head with chopped chilli", "Рыбья голова с рубленым чили"), "鱼 剁椒 辣椒 海鲜 fish seafood chilli рыба морепродукты перец"),  # noqa: E501
    ("meat", False, ("番茄炒蛋", "Scrambled eggs with tomato", "Яичница с помидорами"), "番茄 西红柿 鸡蛋 蛋 egg eggs tomato tomatoes яйца яйцо помидоры томаты"),  # noqa: E501
    ("meat", False, ("清蒸鲈鱼", "Steamed sea bass", "Сибас на пару"), "鱼 鲈鱼 海鲜 fish seafood bass рыба морепродукты сибас окунь"),  # noqa: E501
    ("veg", True, ("酸辣土豆丝", "Hot and sour shredded potatoes", "Остро-кислый картофель соломкой"), "土豆 辣椒 potato potatoes chilli картофель картошка перец"),  # noqa: E501
    ("veg", False, ("清炒菜心", "Stir-fried choy sum", "Жареный чой-сам"), "菜心 青菜 蔬菜 greens vegetables cabbage зелень овощи капуста"),  # noqa: E501
    ("veg", False, ("西芹百合", "Celery with lily bulbs", "Сельдерей с луковицами лилии"), "西芹 芹菜 百合 celery lily сельдерей лилия"),  # noqa: E501
)  # fmt: skip
KNOWN = {fold(name).lower(): (kind, spicy, words) for kind, spicy, names, words in _KNOWN for name in names}

SPICY = re.compile(r"辣|椒|麻婆|川味|chil+i|spic[ey]|\bhot\b|szechuan|sichuan|jalape|остр|чили|перец|перц|пряно", re.I)
_MEAT = re.compile(
    r"肉|鱼|蛋|鸡|鸭|鹅|虾|蟹|牛|羊|猪|排骨|肠|腊|海鲜|鲍|鱿|meat|pork|beef|chicken|duck|lamb|mutton|fish|bass|salmon|tuna|cod|carp|egg|prawn|shrimp|crab|bacon|ham\b|sausage|seafood|steak|rib"
    r"|мяс|свинин|говяд|кури|курк|цыпл|утк|баран|рыб|лосос|сибас|треск|окун|яйц|яич|омлет|кревет|краб|колбас|котлет|ветчин",
    re.I,
)
_NOT_MEAT = re.compile(r"鱼香茄子|素|vegetarian|vegan|veggie|without meat|овощн|вегетариан|без мяса", re.I)


def describe(name: str, given: Mapping[str, Any] | None = None) -> Dish:
    """A dish by name: what the menu says of it, else the table, else a guess from its words."""
    plain = fold(name).lower()
    known = KNOWN.get(plain.strip())
    if known:
        kind, spicy, words = known
    else:
        kind = "meat" if _MEAT.search(plain) and not _NOT_MEAT.search(plain) else "veg"
        spicy, words = bool(SPICY.search(plain)) and not re.search(r"不辣|not spicy|неостр|сладк", plain), ""
    for key, value in (given or {}).items():
        label = fold(str(key)).lower()
        if label in ("kind", "type", "category", "类型", "类别", "荤素", "тип", "вид"):
            kind = _kind(value) or kind
        elif label in ("spicy", "is_spicy", "isspicy", "hot", "辣", "острое") and isinstance(value, bool | int):
            spicy = bool(value)
        elif isinstance(value, str | list):
            words += " " + (value if isinstance(value, str) else " ".join(map(str, value)))
    return Dish(name, kind, spicy, fold(words).lower())


def _kind(value: Any) -> str | None:
    text = str(value).lower()
    if re.search(r"荤|meat|fish|мяс|рыб", text) and not re.search(r"meatless|non-?meat", text):
        return "meat"
    return "veg" if re.search(r"素|veg|овощ|постн|вег", text) else None


def read_menu(result: str) -> list[Dish]:
    """The dishes of a menu tool's result: JSON names or objects, or one name a line."""
    try:
        data = json.loads(result)
    except ValueError:
        data = [line for line in re.split(r"[\n,，、;；]", result)]  # noqa: C416
    names: dict[str, Dish] = {}
    for name, given in _entries(data):
        name = name.strip(" \t-*•·\"'[]")
        if name and len(name) <= 60:
            names.setdefault(name, describe(name, given))
    return list(names.values())


def _entries(data: Any) -> list[tuple[str, Mapping[str, Any] | None]]:
    if isinstance(data, Mapping):
        lists = [value for value in data.values() if isinstance(value, list)]
        if lists:
            return _entries(lists[0])
        return [(str(k), v if isinstance(v, Mapping) else None) for k, v in data.items()]
    if isinstance(data, str):
        return [(line, None) for line in data.split("\n")]
    return [entry for item in data for entry in _entry(item)] if isinstance(data, list) else []


def _entry(item: Any) -> list[tuple[str, Mapping[str, Any] | None]]:
    if isinstance(item, str):
        return [(item, None)]
    if not isinstance(item, Mapping):
        return []
    keys = ("name", "dish", "dishName", "dish_name", "title", "菜名", "名称", "название", "блюдо")
    name = next((item[key] for key in keys if isinstance(item.get(key), str)), None)
    rest = {key: value for key, value in item.items() if key not in keys}
    return [(name, rest)] if name else []
