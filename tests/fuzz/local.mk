# A target fuzz_x: its file here, its name in fuzz_targets, seeds in tests/fuzz/corpus/fuzz_x/.
EXTRA_DIST    += tests/fuzz/run tests/fuzz/driver.c
EXTRA_DIST    += $(addprefix tests/fuzz/,$(addsuffix .c,$(fuzz_targets)))
EXTRA_DIST    += $(patsubst $(srcdir)/%,%,$(wildcard $(srcdir)/tests/fuzz/corpus))
check_scripts += tests/fuzz/corpus-once
fuzz_targets  += fuzz_filter
fuzz_targets  += fuzz_topo_file
fuzz_targets  += fuzz_doc fuzz_param
fuzz_targets  += fuzz_layers
fuzz_targets  += fuzz_expect
fuzz_targets  += fuzz_tc
