"""The groups of workloads: each module has `workloads(ns) -> {name: measure() -> seconds}`."""
