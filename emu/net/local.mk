# emu/net: files are appended to the lists of Makefile.am here.
libgwcore_la_SOURCES += emu/net/graph.c emu/net/route.c emu/net/topo.c
