# emu/transport: files are appended to the lists of Makefile.am here.
libgwplug_la_SOURCES += emu/transport/tp_ideal.c
builtin_plugins += gw_transport_ideal
