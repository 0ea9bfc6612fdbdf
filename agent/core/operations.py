"""Operations on this agent's resources: what is reserved, or made a volume, while it runs.

The agent's checkpoint is the truth about that.  An operation is written down before
anybody hears that it was carried out, and the agent says what is reserved whenever it
registers, so that a master that knows nothing goes on from there.

The outcome of an operation that its framework gave an id is told until the framework has
acknowledged it; of others only that they could not be carried out.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from agent.core.journal import Journal
from agent.core.timers import Timers
from agent.core.updates import FIRST_RETRY_S, MAX_RETRY_S
from agent.core.volumes import carry_out, doubt
from mesos_py.clock import Now
from mesos_py.conversions import conversion_of
from mesos_py.errors import MesosPyError, TooLarge, shortened
from mesos_py.reserved import is_reserved
from mesos_py.resources import Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import types_pb2 as pb

if TYPE_CHECKING:
    from agent.core.state import AgentState

# So many of the last operations are known again, should one come twice.
MAX_REMEMBERED: Final = 1000
# Both are in each REGISTER, which is one message, and above what a master lets come about:
# whatever it does, this agent can register.
MAX_RESERVED_BYTES: Final = 2 * 1024 * 1024
MAX_WAITING_BYTES: Final = 4 * 1024 * 1024
# After these more may be said of what is reserved.
_LONGER: Final = (
    pb.Offer.Operation.RESERVE,
    pb.Offer.Operation.CREATE,
    pb.Offer.Operation.SHRINK_VOLUME,
)


class Operations:
    """Those whose outcome is not acknowledged.  `send` takes the calls for the master."""

    def __init__(self, send: Callable[[agent_pb2.Call], None], journal: Journal) -> None:
        self._send = send
        self._journal = journal
        self._waiting: dict[bytes, pb.Operation] = {}
        self._waiting_bytes = 0
        self._interval_s: dict[bytes, float] = {}
        self._seen: OrderedDict[bytes, None] = OrderedDict()
        self._timers = Timers()
        self._paused = True
        self._not_done: OrderedDict[bytes, pb.Operation] = OrderedDict()

    def __iter__(self) -> Iterator[pb.Operation]:
        return iter(self._waiting.values())

    def frameworks(self) -> set[str]:
        """Who is to acknowledge something."""
        return {each.framework_id.value for each in self._waiting.values()}

    def is_new(self, uuid: bytes) -> bool:
        """Whether an operation has not come yet, as far as is remembered; it has, then."""
        if uuid in self._seen or uuid in self._waiting:
            return False
        self._seen[uuid] = None
        if len(self._seen) > MAX_REMEMBERED:
            self._seen.popitem(last=False)
        return True

    def add(self, operation: pb.Operation, now: Now) -> None:
        """Tell the outcome, `latest_status`, until it is acknowledged."""
        self.restore(operation)
        self._journal.operation(operation)
        if not self._paused:
            self._tell(operation.uuid.value, FIRST_RETRY_S, now)

    def restore(self, operation: pb.Operation) -> None:
        """One of an earlier run of the agent."""
        self._waiting[operation.uuid.value] = operation
        self._waiting_bytes += operation.ByteSize()

    def require_room(self, operation: pb.Operation) -> None:
        """Raises TooLarge when so much waits that another would be too much."""
        size = self._waiting_bytes + operation.ByteSize()
        if size > MAX_WAITING_BYTES:
            text = f"{len(self._waiting)} operations here were not acknowledged: {size} bytes"
            raise TooLarge(f"{text}, at most {MAX_WAITING_BYTES} are kept", field="operations")

    def not_done(self) -> Iterable[pb.Operation]:
        """Those with an id that the master may not have heard of, in short."""
        return self._not_done.values()

    def add_not_done(self, operation: pb.Operation) -> None:
        """Tell it now, and if it has an id when the agent registers as well."""
        self._send(_update(operation))
        if not operation.info.HasField("id"):
            return
        status = pb.OperationStatus()
        status.CopyFrom(operation.latest_status)
        status.message = shortened(status.message)
        uuid = operation.uuid
        self._not_done[uuid.value] = pb.Operation(uuid=uuid, latest_status=status)
        if len(self._not_done) > MAX_REMEMBERED:
            self._not_done.popitem(last=False)

    def acknowledge(self, uuid: bytes) -> bool:
        """Its outcome is known.  False: there is no such operation."""
        operation = self._waiting.pop(uuid, None)
        if operation is None:
            return False
        self._waiting_bytes -= operation.ByteSize()
        self._interval_s.pop(uuid, None)
        self._timers.cancel((uuid.hex(),))
        self._journal.no_operation(uuid)
        return True

    def drop_framework(self, framework_id: str) -> None:
        """It is gone: nobody will ever acknowledge.  What it has reserved stays so."""
        for operation in list(self._waiting.values()):
            if operation.framework_id.value == framework_id:
                self.acknowledge(operation.uuid.value)

    def pause(self) -> None:
        """There is no master to tell."""
        self._paused = True

    def resume(self, now: Now) -> None:
        """The agent has registered: all outcomes are told again."""
        self._paused = False
        self._not_done.clear()
        for uuid in self._waiting:
            self._tell(uuid, FIRST_RETRY_S, now)

    def repeat_framework(self, framework_id: str, now: Now) -> None:
        """Its scheduler has subscribed anew, and may have missed what was told."""
        for uuid, operation in self._waiting.items():
            if not self._paused and operation.framework_id.value == framework_id:
                self._tell(uuid, FIRST_RETRY_S, now)

    def next_s(self) -> float | None:
        """When `repeat` should be called, on the monotonic clock."""
        return None if self._paused else self._timers.next_s()

    def repeat(self, now: Now) -> None:
        """Tell again what is due."""
        if self._paused:
            return
        for (text,) in self._timers.due(now.monotonic_s):
            uuid = bytes.fromhex(text)
            self._tell(uuid, min(MAX_RETRY_S, self._interval_s[uuid] * 2), now)

    def _tell(self, uuid: bytes, again_s: float, now: Now) -> None:
        self._interval_s[uuid] = again_s
        self._timers.set((uuid.hex(),), now.monotonic_s + again_s)
        self._send(_update(self._waiting[uuid]))


def _update(operation: pb.Operation) -> agent_pb2.Call:
    told = agent_pb2.Call.UpdateOperation(operation=operation)
    return agent_pb2.Call(type=agent_pb2.Call.UPDATE_OPERATION, update_operation=told)


def on_event(s: AgentState, event: agent_pb2.Event, now: Now) -> bool:
    """What the master says of operations.  False if it is about something else."""
    if event.type == agent_pb2.Event.APPLY_OPERATION:
        apply(s, event.apply_operation, now)
    elif event.type == agent_pb2.Event.ACKNOWLEDGE_OPERATION:
        acknowledge(s, event.acknowledge_operation)
    else:
        return False
    return True


def apply(s: AgentState, order: agent_pb2.Event.ApplyOperation, now: Now) -> None:
    """APPLY_OPERATION: all of it is done and written down, or nothing and the master is
    told so, whose account of this agent is then another than the agent's."""
    operation = pb.Operation()
    operation.CopyFrom(order.operation)
    uuid = operation.uuid.value
    if not s.operations.is_new(uuid):
        s.drop("operation has come twice", operation=uuid.hex())
        return
    if order.HasField("framework_info"):
        # Also where this cannot be done: of the next ones it may not be said again.
        s.framework(order.framework_info)
    status = operation.latest_status
    status.operation_id.CopyFrom(operation.info.id)
    status.agent_id.value = s.agent_id
    status.uuid.value = uuid
    try:
        change = conversion_of(operation.info, s.total)
        total = change.apply(s.total)
        _require_room(s, operation, total)
        carry_out(s, change)
    except MesosPyError as error:
        s.drop("operation not possible", operation=uuid.hex(), why=error.message)
        status.state, status.message = pb.OPERATION_DROPPED, error.message
        s.operations.add_not_done(operation)
        doubt(s, operation.info, error.message)
        return
    s.total = total
    s.journal.reserved(total)
    if operation.info.HasField("id"):
        status.state = pb.OPERATION_FINISHED
        s.operations.add(operation, now)


def _require_room(s: AgentState, operation: pb.Operation, total: Resources) -> None:
    """Raises TooLarge where the agent would have too much to tell when it registers."""
    if operation.info.HasField("id"):
        s.operations.require_room(operation)
    if operation.info.type not in _LONGER:
        return
    size = sum(len(name) for name in total.names() if is_reserved(name))
    if size > MAX_RESERVED_BYTES:
        text = f"the names of what is reserved here would be {size} bytes"
        raise TooLarge(f"{text}, at most {MAX_RESERVED_BYTES} are kept", field="reserved")


def acknowledge(s: AgentState, event: agent_pb2.Event.AcknowledgeOperation) -> None:
    """ACKNOWLEDGE_OPERATION."""
    if not s.operations.acknowledge(event.uuid.value):
        s.drop("acknowledgement of an unknown operation", operation=event.uuid.value.hex())
