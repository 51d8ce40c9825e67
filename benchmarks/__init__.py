"""One file a question, each beside a peer in one run. `make bench` runs all; `python -m benchmarks NAME…` some."""
