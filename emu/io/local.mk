# emu/io: files are appended to the lists of Makefile.am here.

libgwcore_la_SOURCES += emu/io/capture.c emu/io/filter.c
