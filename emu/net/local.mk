# emu/net: files are appended to the lists of Makefile.am here.
libgwcore_la_SOURCES += emu/net/graph.c emu/net/route.c emu/net/topo.c
libgwcore_la_SOURCES += emu/net/net.c emu/net/port.c emu/net/conn.c emu/net/prog.c emu/net/way.c
