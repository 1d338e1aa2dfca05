# `make bench`: the reference engine, the ns-3 program and our own studies, in one table.
EXTRA_DIST += tests/bench/run tests/bench/mini.c tests/bench/ns3-anchor.cc \
	tests/bench/fat-tree-perm.yaml tests/bench/wan-cubic.yaml tests/bench/fat-tree-ndp.yaml \
	tests/bench/all-to-all.yaml tests/bench/ring-all-reduce.yaml tests/bench/qdisc tests/bench/aqm tests/bench/ns3-tcp \
	tests/bench/ns3-tcp.txt
