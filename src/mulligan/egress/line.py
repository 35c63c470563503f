"""One connection from inside a sandbox, spoken to in HTTP/1.1."""

import asyncio

import h11

CHUNK = 64 * 1024
MOST_HEADER_BYTES = 64 * 1024
SILENCE_SECONDS = 300
"""How long a connection may say nothing while it is its turn."""
REASONS = {400: b"Bad Request", 403: b"Forbidden", 502: b"Bad Gateway"}


class Line:
    """Reads requests and sends answers; one request at a time, as they come."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, said: bytes = b""
    ) -> None:
        self.reader = reader
        self.writer = writer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_HEADER_BYTES)
        if said:
            self._http.receive_data(said)

    async def request(self) -> h11.Request | None:
        """Give the next request; None where no more come."""
        event = await self._next()
        return event if isinstance(event, h11.Request) else None

    async def body(self) -> bytes:
        """Give the next part of the request's body; nothing at its end."""
        event = await self._next()
        return bytes(event.data) if isinstance(event, h11.Data) else b""

    async def _next(self) -> h11.Event | None:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                await self.send(h11.InformationalResponse(status_code=100, headers=[]))
            async with asyncio.timeout(SILENCE_SECONDS):
                self._http.receive_data(await self.reader.read(CHUNK))
        return event if isinstance(event, h11.Event) else None

    async def send(self, event: h11.Event) -> None:
        """Send a part of an answer, as fast as it is read."""
        if written := self._http.send(event):
            self.writer.write(written)
            await self.writer.drain()

    async def answer(self, status: int, said: str) -> None:
        """Answer in a sentence."""
        text = f"{said}\n".encode()
        headers = [(b"content-type", b"text/plain; charset=utf-8")]
        length = [(b"content-length", str(len(text)).encode())]
        reason = REASONS[status]
        await self.send(
            h11.Response(status_code=status, headers=[*headers, *length], reason=reason)
        )
        await self.send(h11.Data(data=text))
        await self.send(h11.EndOfMessage())

    async def open_tunnel(self) -> bytes:
        """Agree to a CONNECT; give what was said already."""
        await self.body()
        await self.send(h11.Response(status_code=200, headers=[], reason=b"Connected"))
        return self._http.trailing_data[0]

    async def again(self) -> bool:
        """Make ready for another request; False where the connection is to end."""
        while await self.body():
            pass
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
            return True
        return False
