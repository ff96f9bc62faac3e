"""Side-by-side benchmarks: the same workload code against two namespaces that share their layout.

`python -m benchmarks` alternates processes A B A B; each process takes the minimum of its own
repetitions, and a workload's figure is the median over the rounds of the ratios A / B. Absolute
times on a shared machine say little; ratios within one run hold.

    workloads/   the code that is timed, one module a group
    timing       how a callable is timed inside a process
    worker       one process: namespace and group in, a JSON object of seconds out
    runner       alternates workers and joins their figures
    report       table, JSON, plot, and the comparison with the kept results
"""
