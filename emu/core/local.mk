libgwcore_la_SOURCES += emu/core/clock.c
libgwcore_la_SOURCES += emu/core/record_sqlite.c
libgwcore_la_SOURCES += emu/core/record_read.c emu/core/table.c
libgwcore_la_SOURCES += emu/core/param.c emu/core/rng.c emu/core/text.h
libgwcore_la_SOURCES += emu/core/expect.c emu/core/record_lookup.c emu/core/analyze.c
libgwcore_la_SOURCES += emu/core/registry.c emu/core/plugin_file.c emu/core/doc.c
libgwcore_la_SOURCES += emu/core/engine.c
EXTRA_DIST += emu/core/schema.md
