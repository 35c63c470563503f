"""Turn the JSON of events that earlier versions stored into today's. Pure.

Version 1 stored an effect as a name, a key and a value, also in what replaces earlier events; the
end of a pull request as its sentence; and of an obstacle that was shown, the hash of its sentence.
"""

from pydantic import JsonValue

ENDS = {
    "Its pull request was merged.": "merged",
    "Its pull request was closed without being merged.": "closed",
}


def upgraded(event: JsonValue) -> JsonValue:
    """Return an event of version 1 as today's; no check that it is one."""
    match event:
        case {"kind": "effect_done", "effect": str(name), "key": str(key), "remote_id": str(value)}:
            return _effect(name, key, value)
        case {"kind": "resolved", "resolution": str(reason)}:
            return {**event, "resolution": ENDS.get(reason, "skipped"), "reason": reason}
        case {"kind": "forgotten" | "restored", "effects": [*kept]}:
            return {**event, "effects": [_kept(each) for each in kept]}
        case _:
            return event


def _kept(written: JsonValue) -> JsonValue:
    match written:
        case {"name": str(name), "remote_id": str(value)}:
            kind, _, key = name.partition(":")
            return _effect(kind, key, value)
        case _:
            return written


def _effect(name: str, key: str, value: str) -> JsonValue:  # noqa: C901 - one flat match
    before, _, after = value.partition(":" if name == "held" else " ")
    first, _, second = key.partition(":")
    match name:
        case "shown_stage":
            return {"kind": "stage_shown", "stage": None if value == "later" else value}
        case "status_comment":
            return {"kind": "status_written", "comment": value}
        case "label_comment":
            return {"kind": "label_requested", "act": key, "comment": value}
        case "reply":
            return {"kind": "command_answered", "act": key, "comment": value}
        case "held":
            return {"kind": "block_shown", "obstacle": key, "epoch": before}
        case "push":
            return {"kind": "pushed", "branch": key, "head_sha": value}
        case "pushed_work":
            return {"kind": "work_pushed", "attempt": key, "git_ref": value}
        case "merge":
            return {"kind": "base_merged", "base_sha": first, "head_sha": second, "merge": value}
        case "merge_refused":
            return {"kind": "merge_refused", "base_sha": first, "head_sha": second}
        case "settling":
            return {"kind": "reviews_settling", "review": before or None, "until": after or None}
        case "pull_note":
            return {"kind": "pull_note", "topic": key, "text": value}
        case "answer":
            number, attempt = (second, None) if first == "review" else (first, second)
            of = {"number": number, "attempt": attempt}
            return {"kind": "review_answered", **of, "comment": value}
        case "comments_read":
            return {"kind": "comments_read", "read_to": value.removeprefix("to:")}
        case "not_found":
            since = None if value == "found" else value
            return {"kind": "not_found_since", "what": key, "since": since}
        case "in_hand":
            return {"kind": "in_hand", "act": value}
        case "publication_delayed":
            return {"kind": "publication_delayed", "since": before, "reason": after}
        case _:
            return {"kind": name}
