"""Where people look further."""

from runtime.settings import Settings
from workflows.names import order_workflow_id

#: Where Temporal's Web UI of `make up` and of docker-compose.yml listens, whatever BIND_HOST is.
WEB_UI_HOST = "127.0.0.1"


def web_ui_link(settings: Settings, order_id: str) -> str:
    """The order's page in Temporal's Web UI, at TEMPORAL_UI_URL or else on this machine."""
    base = settings.temporal_ui_url or f"http://{WEB_UI_HOST}:{settings.temporal_ui_port}"
    namespace = settings.temporal_namespace or "default"
    return f"{base.rstrip('/')}/namespaces/{namespace}/workflows/{order_workflow_id(order_id)}"
