# emu/tc: files are appended to the lists of Makefile.am here.
libgwcore_la_SOURCES += emu/tc/tree.c
