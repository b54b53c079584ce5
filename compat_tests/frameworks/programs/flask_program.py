"""Flask with its sessions, its limits and Server-Sent Events in the store."""

import threading

import httpx
from flask import Flask, session
from flask_limiter import Limiter
from flask_limiter.util import get_remote_address
from flask_session import Session
from flask_sse import sse
from place import URL, client
from werkzeug.serving import make_server

app = Flask(__name__)
app.config.update(SESSION_TYPE="redis", SESSION_REDIS=client(), SECRET_KEY="secret", REDIS_URL=URL)
Session(app)
limiter = Limiter(
    get_remote_address,
    app=app,
    storage_uri=URL or "redis://nowhere",
    storage_options={"connection_pool": client().connection_pool},
    strategy="moving-window",
)


@app.route("/count")
def count() -> str:
    session["count"] = session.get("count", 0) + 1
    return str(session["count"])


@app.route("/leave")
def leave() -> str:
    session.clear()
    return ""


@app.route("/few")
@limiter.limit("3/hour")
def few() -> str:
    return "ok"


server = make_server("127.0.0.1", 0, app, threaded=True)
if URL:
    app.register_blueprint(sse, url_prefix="/stream")
threading.Thread(target=server.serve_forever, daemon=True).start()
base = f"http://127.0.0.1:{server.port}"
with httpx.Client(base_url=base) as one, httpx.Client(base_url=base) as two:
    assert [one.get("/count").text for _ in range(3)] == ["1", "2", "3"]
    assert two.get("/count").text == "1"
    one.get("/leave")
    assert one.get("/count").text == "1"
    assert [one.get("/few").status_code for _ in range(4)] == [200, 200, 200, 429]
    if URL:
        heard = threading.Event()

        def publish() -> None:
            while not heard.wait(0.1):
                with app.app_context():
                    sse.publish({"text": "hello"}, type="greeting")

        publishing = threading.Thread(target=publish)
        publishing.start()
        with one.stream("GET", "/stream", timeout=60) as stream:
            for line in stream.iter_lines():
                if line.startswith("data:"):
                    assert line == 'data:{"text": "hello"}', line
                    break
        heard.set()
        publishing.join()
print("done", flush=True)
