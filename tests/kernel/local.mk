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
# Loaded before user-mode Linux, see there: plain whatever the rest is built with.
check_DATA    += tests/kernel/xstate.so
CLEANFILES    += tests/kernel/xstate.so
EXTRA_DIST    += tests/kernel/xstate.c
tests/kernel/xstate.so: tests/kernel/xstate.c
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(CC) $(CFLAGS) -fno-sanitize=all -fPIC -shared -o $@ \
	    $(srcdir)/tests/kernel/xstate.c

# TCP against the kernel's, cell by cell; `make tcp-grid` plays all cells.
check_PROGRAMS         += tests/kernel/tcp
tests_kernel_tcp_SOURCES = tests/kernel/tcp.c
tests_kernel_tcp_LDADD   = $(GW_DEPS_LIBS) -lm
check_scripts += tests/kernel/tcp.sh
EXTRA_DIST    += tests/kernel/tcp-misses.txt tests/kernel/tcp-cells.txt tests/data/tcp/README.md
EXTRA_DIST    += tests/data/tcp/goodput.csv tests/data/tcp/fct.csv.gz tests/data/tcp/share.csv
EXTRA_DIST    += tests/data/tcp/parallel.csv tests/data/tcp/goodput-own.csv
EXTRA_DIST    += tests/data/tcp/fct-own.csv tests/data/tcp/parallel-own.csv

# The table of all cells in the source, or, with TCP_GRID, some of them on the terminal.
tcp-grid: gradwire$(EXEEXT) tests/kernel/tcp$(EXEEXT)
	if test -n "$(TCP_GRID)"; then out=/dev/stdout; else out=$(srcdir)/tests/kernel/tcp-cells.txt; fi; \
	    { echo "# Every cell of tests/data/tcp, by make tcp-grid: see tcp.c. Made $$(date -u +%F)."; \
	      GRADWIRE=$(abs_top_builddir)/gradwire$(EXEEXT) tests/kernel/tcp$(EXEEXT) -a -s 5 \
	          $(TCP_GRID) $(srcdir)/tests/data/tcp; } >$$out
.PHONY: tcp-grid

# Packet scripts: each repair of TCP against the kernel's.
check_PROGRAMS                += tests/kernel/tcpscripts
tests_kernel_tcpscripts_SOURCES = tests/kernel/tcpscripts.c
tests_kernel_tcpscripts_LDADD   = $(GW_DEPS_LIBS) -lm
check_scripts += tests/kernel/tcpscripts.sh
EXTRA_DIST    += $(patsubst $(srcdir)/%,%,$(wildcard $(srcdir)/tests/data/tcp/scripts/*))
# Cells of one's own: record-tcp plays a grid on a kernel with virtual time.
check_PROGRAMS               += tests/kernel/recordtcp
tests_kernel_recordtcp_SOURCES = tests/kernel/recordtcp.c
tests_kernel_recordtcp_CFLAGS  = $(AM_CFLAGS) -pthread
tests_kernel_recordtcp_LDADD   = -lm -lpthread
EXTRA_DIST                   += tests/kernel/record-tcp tests/kernel/guestnet.h

# And packet scripts: `make record-tcp-scripts` records own.txt anew.
check_PROGRAMS                   += tests/kernel/recordscripts
tests_kernel_recordscripts_SOURCES = tests/kernel/recordscripts.c
tests_kernel_recordscripts_CFLAGS  = $(AM_CFLAGS) -pthread
tests_kernel_recordscripts_LDADD   = -lpthread
EXTRA_DIST                       += tests/kernel/tcpscripts-misses.txt tests/kernel/scriptwords.h

record-tcp-scripts: tests/kernel/recordscripts$(EXEEXT) tests/kernel/xstate.so
	GW_BUILDDIR=. $(srcdir)/tests/kernel/record-tcp scripts <$(srcdir)/tests/data/tcp/scripts/own.txt >own.csv
	mv own.csv $(srcdir)/tests/data/tcp/scripts/
.PHONY: record-tcp-scripts
