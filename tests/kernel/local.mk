# The kernel as reference: recordings of it, and itself in user-mode Linux.
check_PROGRAMS               += tests/kernel/behaviour
tests_kernel_behaviour_SOURCES = tests/kernel/behaviour.c
tests_kernel_behaviour_LDADD   = $(GW_DEPS_LIBS)
check_PROGRAMS               += tests/kernel/tclines
tests_kernel_tclines_SOURCES   = tests/kernel/tclines.c
tests_kernel_tclines_LDADD     = $(GW_DEPS_LIBS)
check_scripts += tests/kernel/behaviour.sh tests/kernel/uml.sh
EXTRA_DIST    += tests/data/tc/README.md tests/data/tc/behaviour.json
EXTRA_DIST    += tests/data/tc/rate_1m_c48.csv tests/data/tc/rate_1m_dly100.csv
EXTRA_DIST    += tests/data/tc/rate_1m_o20.csv tests/data/tc/rate_gap_bonus.csv
EXTRA_DIST    += tests/data/tc/cake_8m_1flow.csv.gz tests/data/tc/codel_o10.csv.gz
EXTRA_DIST    += tests/data/tc/codel_ce_threshold.csv.gz
EXTRA_DIST    += tests/data/tc/fq_maxrate.csv tests/data/tc/sfq_limit.csv
check_PROGRAMS               += tests/kernel/ktrace
tests_kernel_ktrace_SOURCES    = tests/kernel/ktrace.c
tests_kernel_ktrace_LDADD      = $(GW_DEPS_LIBS)
# It runs in the guest, too, where a process has no room for the shadow of AddressSanitizer.
tests_kernel_ktrace_CFLAGS     = $(AM_CFLAGS) -fno-sanitize=all
tests_kernel_ktrace_LDFLAGS    = -fno-sanitize=all
check_scripts += tests/kernel/recorded.sh tests/kernel/traces.sh
EXTRA_DIST    += tests/kernel/guest.sh tests/kernel/build-kernel tests/kernel/kernel.config
EXTRA_DIST    += tests/data/tc/ktraces.gz

# TCP against the kernel's, cell by cell; `make tcp-grid` plays all cells.
check_PROGRAMS         += tests/kernel/tcp
tests_kernel_tcp_SOURCES = tests/kernel/tcp.c
tests_kernel_tcp_LDADD   = $(GW_DEPS_LIBS) -lm
check_scripts += tests/kernel/tcp.sh
EXTRA_DIST    += tests/kernel/tcp-misses.txt tests/data/tcp/README.md tests/data/tcp/goodput.csv
EXTRA_DIST    += tests/data/tcp/fct.csv.gz tests/data/tcp/share.csv tests/data/tcp/parallel.csv

tcp-grid: gradwire$(EXEEXT) tests/kernel/tcp$(EXEEXT)
	GRADWIRE=$(abs_top_builddir)/gradwire$(EXEEXT) tests/kernel/tcp$(EXEEXT) -a -s 5 $(TCP_GRID) \
	    $(srcdir)/tests/data/tcp
.PHONY: tcp-grid
