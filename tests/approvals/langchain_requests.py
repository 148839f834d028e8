"""Requests as langchain 1.5.2 with langgraph 1.2.24 makes them: its agent, with a middleware that asks about two tools.

Recorded from `agent.invoke(...)["__interrupt__"]`; `Interrupt.value` and, by call, `Interrupt.response_schema`. The
answers in test_contracts.py have resumed those very agents.
"""

from __future__ import annotations

from typing import Any

PAY = {"to": "bob", "amount": 900}

BATCHED: dict[str, Any] = {
    "action_requests": [
        {
            "name": "pay",
            "args": PAY,
            "description": (
                "Tool execution requires approval\n\nTool: pay\nArgs: {'to': 'bob', 'amount': 900}"
            ),
        },
        {"name": "wipe", "args": {"path": "/etc"}, "description": "Wipes everything below a path."},
    ],
    "review_configs": [
        {"action_name": "pay", "allowed_decisions": ["approve", "edit", "reject"]},
        {"action_name": "wipe", "allowed_decisions": ["reject", "respond"]},
    ],
}

BY_CALL: dict[str, Any] = {
    "type": "tool_approval",
    "tool_call_id": "c1",
    "name": "pay",
    "args": PAY,
    "description": "Tool execution requires approval\n\nTool: pay\nArgs: {'to': 'bob', 'amount': 900}",
}

BY_CALL_ANSWERS: dict[str, Any] = {
    "$defs": {
        "ApproveDecision": {
            "description": "Response when a human approves the action.",
            "properties": {"type": {"const": "approve", "title": "Type", "type": "string"}},
            "required": ["type"],
            "title": "ApproveDecision",
            "type": "object",
        },
        "EditDecision": {
            "properties": {
                "type": {"const": "edit", "title": "Type", "type": "string"},
                "edited_action": {"$ref": "#/$defs/EditedAction"},
            },
            "required": ["type", "edited_action"],
            "title": "EditDecision",
            "type": "object",
        },
        "EditedAction": {
            "properties": {
                "name": {"const": "pay", "title": "Name", "type": "string"},
                "args": {"$ref": "#/$defs/pay"},
            },
            "required": ["name", "args"],
            "title": "EditedAction",
            "type": "object",
        },
        "RejectDecision": {
            "description": "Response when a human rejects the action.",
            "properties": {
                "type": {"const": "reject", "title": "Type", "type": "string"},
                "message": {"title": "Message", "type": "string"},
            },
            "required": ["type"],
            "title": "RejectDecision",
            "type": "object",
        },
        "pay": {
            "description": "Pay somebody.",
            "properties": {
                "to": {"title": "To", "type": "string"},
                "amount": {"title": "Amount", "type": "integer"},
                "note": {"default": "", "title": "Note", "type": "string"},
            },
            "required": ["to", "amount"],
            "title": "pay",
            "type": "object",
        },
    },
    "discriminator": {
        "mapping": {
            "approve": "#/$defs/ApproveDecision",
            "edit": "#/$defs/EditDecision",
            "reject": "#/$defs/RejectDecision",
        },
        "propertyName": "type",
    },
    "oneOf": [
        {"$ref": "#/$defs/ApproveDecision"},
        {"$ref": "#/$defs/EditDecision"},
        {"$ref": "#/$defs/RejectDecision"},
    ],
}

# a tool with one decision alone: its plain schema, without oneOf
REJECT_ONLY: dict[str, Any] = BY_CALL_ANSWERS["$defs"]["RejectDecision"]

# langgraph.prebuilt.interrupt.HumanInterrupt, as its own example asks: interrupt([request])[0]
INBOX: list[dict[str, Any]] = [
    {
        "action_request": {"action": "run_command", "args": {"command": "ls", "args": ["-l"]}},
        "config": {"allow_ignore": True, "allow_respond": True, "allow_edit": True, "allow_accept": True},
        "description": "Please review the command before execution",
    }
]
