"""What Mesos says of its fields and proto3 cannot: which are required, which have defaults.

Mesos v1 is proto2.  A proto2 peer refuses a message in which a required field is absent,
also one that is zero, which proto3 leaves out; and in JSON a field with a default of its
own is always written.  Names are those of our messages, without `mesos_py.v1.`; what
is not among them (yet) says nothing.
"""

from __future__ import annotations

from typing import Final

_REQUIRED: Final = """
Address: port
AgentID: value
AgentInfo: hostname
Attribute: name type
CheckInfo.Command: command
CheckInfo.Http: port
CheckInfo.Tcp: port
CommandInfo.URI: value
ContainerID: value
ContainerInfo: type
ContainerInfo.DockerInfo: image
ContainerInfo.DockerInfo.PortMapping: host_port container_port
Credential: principal
DiscoveryInfo: visibility
DomainInfo.FaultDomain: region zone
DrainInfo: state config
DurationInfo: nanoseconds
Environment.Variable: name
ExecutorID: value
ExecutorInfo: executor_id
FileInfo: path
Flag: name
FrameworkID: value
FrameworkInfo: user name
HealthCheck.HTTPCheckInfo: port
HealthCheck.TCPCheckInfo: port
Image: type
Image.Appc: name
Image.Docker: name
InverseOffer: id framework_id unavailability
Label: key
MachineInfo: id
MasterInfo: id ip port
Metric: name
NetworkInfo.PortMapping: host_port container_port
Offer: id framework_id agent_id hostname
Offer.Operation.CreateDisk: source target_type
Offer.Operation.DestroyDisk: source
Offer.Operation.GrowVolume: volume addition
Offer.Operation.LaunchGroup: executor task_group
Offer.Operation.ShrinkVolume: volume subtract
OfferID: value
Operation: info latest_status uuid
OperationID: value
OperationStatus: state
Parameter: key value
Port: number
RateLimit: principal
Resource: name type
Resource.DiskInfo.Persistence: id
Resource.DiskInfo.Source: type
ResourceProviderID: value
ResourceStatistics: timestamp
Role: name weight
Secret.Reference: name
Secret.Value: data
TTYInfo.WindowSize: rows columns
Task: name task_id framework_id agent_id state
TaskID: value
TaskInfo: name task_id agent_id
TaskStatus: task_id state
TimeInfo: nanoseconds
URL: scheme address
UUID: value
Unavailability: start
Value: type
Value.Range: begin end
Value.Scalar: value
Value.Text: value
VersionInfo: version
Volume: mode container_path
Volume.Source.DockerVolume: name
Volume.Source.HostPath: path
Volume.Source.SandboxPath: path
WeightInfo: weight
agent_operator.Call.AttachContainerOutput: container_id
agent_operator.Call.KillContainer: container_id
agent_operator.Call.KillNestedContainer: container_id
agent_operator.Call.LaunchContainer: container_id
agent_operator.Call.LaunchNestedContainer: container_id
agent_operator.Call.LaunchNestedContainerSession: container_id
agent_operator.Call.ListFiles: path
agent_operator.Call.ReadFile: path offset
agent_operator.Call.RemoveContainer: container_id
agent_operator.Call.RemoveNestedContainer: container_id
agent_operator.Call.SetLoggingLevel: level duration
agent_operator.Call.WaitContainer: container_id
agent_operator.Call.WaitNestedContainer: container_id
agent_operator.Response.GetContainers.Container: container_id
agent_operator.Response.GetExecutors.Executor: executor_info
agent_operator.Response.GetFrameworks.Framework: framework_info
agent_operator.Response.GetHealth: healthy
agent_operator.Response.GetLoggingLevel: level
agent_operator.Response.GetVersion: version_info
agent_operator.Response.ReadFile: size data
allocator.InverseOfferStatus: status framework_id timestamp
executor.Call: executor_id framework_id
executor.Call.Message: data
executor.Call.Update: status
executor.Event.Acknowledged: task_id uuid
executor.Event.Error: message
executor.Event.Kill: task_id
executor.Event.Launch: task
executor.Event.LaunchGroup: task_group
executor.Event.Message: data
executor.Event.Subscribed: executor_info framework_info agent_info
maintenance.ClusterStatus.DrainingMachine: id
maintenance.Window: unavailability
operator.Call.CreateVolumes: agent_id
operator.Call.DeactivateAgent: agent_id
operator.Call.DestroyVolumes: agent_id
operator.Call.DrainAgent: agent_id
operator.Call.GrowVolume: volume addition
operator.Call.ListFiles: path
operator.Call.MarkAgentGone: agent_id
operator.Call.ReactivateAgent: agent_id
operator.Call.ReadFile: path offset
operator.Call.ReserveResources: agent_id
operator.Call.RemoveQuota: role
operator.Call.SetLoggingLevel: level duration
operator.Call.SetQuota: quota_request
operator.Call.ShrinkVolume: volume subtract
operator.Call.Teardown: framework_id
operator.Call.UnreserveResources: agent_id
operator.Call.UpdateMaintenanceSchedule: schedule
operator.Event.AgentAdded: agent
operator.Event.AgentRemoved: agent_id
operator.Event.FrameworkAdded: framework
operator.Event.FrameworkRemoved: framework_info
operator.Event.FrameworkUpdated: framework
operator.Event.TaskAdded: task
operator.Event.TaskUpdated: framework_id status state
operator.Response.GetAgents.Agent: agent_info active version
operator.Response.GetExecutors.Executor: executor_info agent_id
operator.Response.GetFrameworks.Framework: framework_info active connected recovered
operator.Response.GetHealth: healthy
operator.Response.GetLoggingLevel: level
operator.Response.GetMaintenanceSchedule: schedule
operator.Response.GetMaintenanceStatus: status
operator.Response.GetQuota: status
operator.Response.GetVersion: version_info
operator.Response.ReadFile: size data
quota.QuotaConfig: role
scheduler.AttributeConstraint: selector predicate
scheduler.Call.Acknowledge: agent_id task_id uuid
scheduler.Call.AcknowledgeOperationStatus: uuid operation_id
scheduler.Call.Kill: task_id
scheduler.Call.Message: agent_id executor_id data
scheduler.Call.Reconcile.Task: task_id
scheduler.Call.ReconcileOperations.Operation: operation_id
scheduler.Call.Shutdown: executor_id agent_id
scheduler.Call.Subscribe: framework_info
scheduler.Call.UpdateFramework: framework_info
scheduler.Event.Error: message
scheduler.Event.Message: agent_id executor_id data
scheduler.Event.Rescind: offer_id
scheduler.Event.RescindInverseOffer: inverse_offer_id
scheduler.Event.Subscribed: framework_id
scheduler.Event.Update: status
scheduler.Event.UpdateOperationStatus: status
"""

_DEFAULTS: Final = """
AgentInfo: port=5051
CheckInfo: delay_seconds=15.0 interval_seconds=10.0 timeout_seconds=20.0
CommandInfo: shell=true
CommandInfo.URI: extract=true
ContainerInfo.DockerInfo: network=HOST privileged=false
DrainConfig: mark_gone=false
Environment.Variable: type=VALUE
Filters: refuse_seconds=5.0
FrameworkInfo: failover_timeout=0.0 checkpoint=false
HealthCheck: delay_seconds=15.0 interval_seconds=10.0 timeout_seconds=20.0
HealthCheck: consecutive_failures=3 grace_period_seconds=10.0
HealthCheck.HTTPCheckInfo: protocol=IPv4
HealthCheck.TCPCheckInfo: protocol=IPv4
Image: cached=true
LinuxInfo: share_cgroups=true
MasterInfo: port=5050
NetworkInfo.IPAddress: protocol=IPv4
operator.Call.DrainAgent: mark_gone=false
"""

PACKAGE: Final = "mesos_py.v1."


def _rows(table: str) -> dict[str, tuple[str, ...]]:
    rows: dict[str, tuple[str, ...]] = {}
    for line in table.strip().split("\n"):
        name, _, items = line.partition(": ")
        rows[PACKAGE + name] = (*rows.get(PACKAGE + name, ()), *items.split())
    return rows


def _pair(item: str) -> tuple[str, str]:
    name, _, value = item.partition("=")
    return name, value


# By full name of a message: the fields without which it is none.
REQUIRED: Final[dict[str, tuple[str, ...]]] = _rows(_REQUIRED)
# The fields that have a default of their own, and it as text ("true", "5.0", an enum's name).
DEFAULTS: Final[dict[str, dict[str, str]]] = {
    name: dict(map(_pair, items)) for name, items in _rows(_DEFAULTS).items()
}
