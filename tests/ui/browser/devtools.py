"""A headless Chromium, driven over its DevTools protocol with nothing but Python's standard library."""

import base64
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request


class WebSocket:
    """As much of RFC 6455 as the protocol needs: text messages, fragmented ones included."""

    def __init__(self, url):
        host, path = url.removeprefix("ws://").split("/", 1)
        name, port = host.split(":")
        self._socket = socket.create_connection((name, int(port)), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        self._socket.sendall(
            f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        head = b""
        while b"\r\n\r\n" not in head:
            head += self._socket.recv(1)
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise RuntimeError(f"no WebSocket: {head!r}")

    def send(self, text):
        data = text.encode()
        mask = os.urandom(4)
        if len(data) < 126:
            head = struct.pack("!BB", 0x81, 0x80 | len(data))
        elif len(data) < 65536:
            head = struct.pack("!BBH", 0x81, 0x80 | 126, len(data))
        else:
            head = struct.pack("!BBQ", 0x81, 0x80 | 127, len(data))
        repeated = mask * (len(data) // 4 + 1)
        self._socket.sendall(head + mask + bytes(a ^ b for a, b in zip(data, repeated)))

    def receive(self):
        message = b""
        while True:
            first, second = self._exactly(2)
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack("!H", self._exactly(2))
            elif size == 127:
                (size,) = struct.unpack("!Q", self._exactly(8))
            data = self._exactly(size)
            if first & 0x0F == 8:
                raise RuntimeError("the browser closed the connection")
            if first & 0x0F in (0, 1, 2):
                message += data
                if first & 0x80:
                    return message.decode()

    def _exactly(self, size):
        data = bytearray()
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise RuntimeError("the browser is gone")
            data += more
        return bytes(data)

    def close(self):
        self._socket.close()


class Page:
    """One tab."""

    def __init__(self, url):
        self._socket = WebSocket(url)
        self._next = 0
        self._is_broken = False  # an exception ended some of its code
        self.problems = []  # exceptions and errors of the console, violations of the policy among them
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.command(domain + ".enable")

    def import_modules(self, *names):
        """What the page's modules export gets a global name in every document, for evaluate()."""
        imports = "".join(f"Object.assign(window, await import({json.dumps(name)}));" for name in names)
        self.command("Page.addScriptToEvaluateOnNewDocument",
                     source="addEventListener('DOMContentLoaded', async () => {" + imports + "});")

    def command(self, method, **parameters):
        self._next += 1
        number = self._next
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.receive())
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self._note(message)

    def _note(self, message):
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(parameters["exceptionDetails"])[:600])
            self._is_broken = True
        if method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.problems.append(parameters["entry"]["text"])
        if method == "Page.javascriptDialogOpening":
            self.problems.append("a dialog was opened: " + parameters["message"])

    def evaluate(self, expression):
        result = self.command("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {json.dumps(result['exceptionDetails'])[:600]}")
        return result["result"].get("value")

    def open(self, url):
        self.command("Page.navigate", url=url)

    def wait_until(self, expression, seconds=120):
        """Asks again and again until the expression is true."""
        limit = time.monotonic() + seconds
        while True:
            try:
                if self.evaluate(f"Boolean({expression})"):
                    return
            except RuntimeError:
                if self._is_broken or time.monotonic() > limit:
                    raise
            if self._is_broken or time.monotonic() > limit:
                shown = self.evaluate("document.body.innerText")
                raise AssertionError(f"not within {seconds} s: {expression}\n{shown}\n{self.problems}")
            time.sleep(0.05)

    def size(self, width, height, scale=1):
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                     mobile=width < 500)

    def prefers(self, scheme):
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def key(self, name, code=None):
        keys = {"ArrowRight": 39, "ArrowDown": 40, "ArrowUp": 38, "Enter": 13, "Escape": 27, "Tab": 9}
        for kind in ("keyDown", "keyUp"):
            self.command("Input.dispatchKeyEvent", type=kind, key=name, code=code or name,
                         windowsVirtualKeyCode=keys.get(name, 0))

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.command("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, file, whole=True):
        answer = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        pathlib.Path(file).write_bytes(base64.b64decode(answer["data"]))


class Browser:
    def __init__(self):
        program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if program is None:
            raise RuntimeError("there is no chromium: ./dev test --browser installs it")
        self._directory = tempfile.TemporaryDirectory(prefix="hubferry-browser-", ignore_cleanup_errors=True)
        # Nothing but loopback is reached, and the sandbox needs rights that a container does not have.
        self._process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--disable-background-networking", "--disable-component-update", "--no-first-run", "--no-proxy-server",
             "--remote-debugging-port=0", "--remote-allow-origins=*", "--user-data-dir=" + self._directory.name,
             "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        marker = pathlib.Path(self._directory.name, "DevToolsActivePort")
        limit = time.monotonic() + 60
        while not marker.exists() or "\n" not in marker.read_text():
            if self._process.poll() is not None or time.monotonic() > limit:
                raise RuntimeError("chromium does not start")
            time.sleep(0.05)
        self._port = int(marker.read_text().splitlines()[0])

    def page(self):
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}/json/new?about:blank", method="PUT")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return Page(json.load(answer)["webSocketDebuggerUrl"])

    def close(self):
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._directory.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
