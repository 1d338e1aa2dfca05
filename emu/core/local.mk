libgwcore_la_SOURCES += emu/core/clock.c
