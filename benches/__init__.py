"""Benchmarks: data from seeds, peers beside us, ratios of one run.

========== =======================================================================================
data       batches written in plain Python from the format's description: also the tests' writer
peers      what is timed: ours, other libraries, bare yardsticks, each as a function of the data;
           in `peers/java` Kafka's own classes, which `peers.maven` builds and starts
race       every round runs each candidate once, in turn; medians of the rounds' ratios
worker     a candidate in another process: another CPU level, another revision, Java
cases      the rows of the speed table: data, base, target
table      `make bench` and `make bench-java`: the tables, JSON, the chart
guard      `make bench-guard`: what CI holds
compare    `make bench-compare REV=…`: this tree against another revision
bench_*    the same candidates as pytest-benchmark tests, which run once in `make test`
========== =======================================================================================

Only ratios within one run count: a neighbour halves a shared machine's speed for seconds at a time.
"""
