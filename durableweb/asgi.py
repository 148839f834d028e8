"""The web process: pages over HTTP, live changes over WebSocket."""

from __future__ import annotations

import os
import warnings

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "durableweb.settings")
# WhiteNoise reads its files in a thread, as all of Django's synchronous middleware does: not worth a warning a start.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")

django_application = get_asgi_application()

from django.conf import settings  # noqa: E402  after Django is set up, as the routes below
from django.db import connections  # noqa: E402

from durableweb import web_connections  # noqa: E402
from durableweb.bodies import LimitedBodies  # noqa: E402
from runs.live.sockets import websocket_urlpatterns  # noqa: E402

settings.SECRET_KEY  # noqa: B018  a missing one ends the start, not the first sign-in

web_connections.share(connections)

application = ProtocolTypeRouter(
    {
        "http": LimitedBodies(django_application),
        "websocket": AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(websocket_urlpatterns))),
    }
)
