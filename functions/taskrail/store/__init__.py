"""DynamoDB: one item per task, and every guard inside the write."""

from taskrail.store.items import NewerLayout, from_item, to_item
from taskrail.store.limits import Limits
from taskrail.store.reservations import Reservation, Reservations
from taskrail.store.tasks import Conflict, Store

__all__ = ["Conflict", "Limits", "NewerLayout", "Reservation", "Reservations", "Store", "from_item", "to_item"]
