"""Look at where time and memory go: records of what the host and the devices do."""

from xstack.namespaces import namespace

with namespace(globals(), at_once=True):
    from xjit.debug.profiler import (
        ProfileData as ProfileData, ProfileEvent as ProfileEvent, ProfileLine as ProfileLine,
        ProfileOptions as ProfileOptions, ProfilePlane as ProfilePlane,
        ProfileSession as ProfileSession, StepTraceAnnotation as StepTraceAnnotation,
        TraceAnnotation as TraceAnnotation, annotate_function as annotate_function,
        device_memory_profile as device_memory_profile, export_profile_data as export_profile_data,
        register_subprocess as register_subprocess,
        save_device_memory_profile as save_device_memory_profile, start_server as start_server,
        start_trace as start_trace, stop_server as stop_server, stop_trace as stop_trace,
        trace as trace,
    )  # fmt: skip
