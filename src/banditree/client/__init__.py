"""Two clients of ``banditree serve``: `Client` asks it for each decision, `Local` decides in the application's process.

Both need only the standard library and what `import banditree` needs.
"""

from banditree.client.local import Local
from banditree.client.remote import Client, ServiceError

__all__ = ["Client", "Local", "ServiceError"]
