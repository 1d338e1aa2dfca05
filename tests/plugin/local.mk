# The loaded road: an out-of-tree plugin against installed headers, and built-in ones as .so.
check_scripts += tests/plugin/own-qdisc tests/plugin/loaded
