# emu/tc: files are appended to the lists of Makefile.am here.
libgwcore_la_SOURCES += emu/tc/tree.c
libgwcore_la_SOURCES += emu/tc/out.c emu/tc/cmd.c emu/tc/qdisc.c emu/tc/class.c emu/tc/show.c
libgwcore_la_SOURCES += emu/tc/filter.c
