"""Play a labelled conversation against the classroom model and judge the last reply."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from memlab.offline.chat_model import respond

DONT_KNOW = {
    "zh": re.compile(r"不知道|不清楚|没有告诉|还没告诉|没告诉"),
    "en": re.compile(r"don't know|do not know|haven't told|not told", re.I),
    "ru": re.compile(r"не знаю|не говорили|не сказали", re.I),
}


def load(path: Path | str) -> list[dict[str, Any]]:
    """The cases of a JSON Lines file."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def run_case(case: dict[str, Any]) -> tuple[bool, str]:
    """(whether the last reply is right, the reply) for `{"turns": […], "ask": …, "expect_any": […], …}`."""
    messages: list[dict[str, Any]] = []
    for text in [*case.get("turns", []), case["ask"]]:
        messages.append({"role": "user", "content": text})
        reply = respond({"messages": messages}).text or ""
        messages.append({"role": "assistant", "content": reply})
    return judge(case, reply), reply


def judge(case: dict[str, Any], reply: str) -> bool:
    """One of the expected texts (or an honest don't-know), and none of the rejected ones."""
    low = reply.lower()
    if any(text.lower() in low for text in case.get("reject", [])):
        return False
    if case.get("unknown"):
        return bool(DONT_KNOW[case["lang"]].search(reply))
    return any(text.lower() in low for text in case["expect_any"])


def report(path: Path | str) -> tuple[int, int]:
    """Print every failing case; give (passed, all)."""
    cases = load(path)
    results = [(case, *run_case(case)) for case in cases]
    for case, ok, reply in results:
        if not ok:
            print(case["id"], case.get("turns"), "|", case["ask"], "->", reply)
    passed = sum(ok for _, ok, _ in results)
    print(f"{path}: {passed}/{len(cases)}")
    return passed, len(cases)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        report(name)
