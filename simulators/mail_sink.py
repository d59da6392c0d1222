"""The mail sink: takes every mail, sends none on, and shows on its HTTP port what came."""

import email
import email.policy
import json
from typing import Any

from aiosmtpd.smtp import SMTP, Envelope, Session

from simulators.clock import Clock
from simulators.ids import new_id
from simulators.store import Store


class MailSink:
    """aiosmtpd's handler. A mail's id is its Message-ID: that tells a consumer's second copy from a first one."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 - aiosmtpd's name
        """Keeps the mail; the SMTP answer."""
        content = envelope.content or b""
        raw = content if isinstance(content, bytes) else content.encode()
        message = email.message_from_bytes(raw, policy=email.policy.default)
        mail = {
            "id": str(message.get("Message-ID", "")).strip().strip("<>") or new_id("mail"),
            "to": ", ".join(envelope.rcpt_tos),
            "subject": str(message.get("Subject", "")),
            "at": round(self._clock.now(), 3),
        }
        self._store.write("INSERT INTO mails (doc) VALUES (?)", json.dumps(mail))
        return "250 OK"

    def ledger(self) -> dict[str, Any]:
        """All mails in the order in which they came."""
        return {"messages": self._store.docs("SELECT doc FROM mails ORDER BY seq")}
