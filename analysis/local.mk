# analysis: files are appended to the lists of Makefile.am here.
libgwplug_la_SOURCES += analysis/an_iteration.c
builtin_plugins      += gw_analysis_iteration
libgwplug_la_SOURCES += analysis/an_fct.c
builtin_plugins      += gw_analysis_fct
libgwplug_la_SOURCES += analysis/an_critical.c
builtin_plugins      += gw_analysis_critical
libgwplug_la_SOURCES += analysis/an_correlation.c
builtin_plugins      += gw_analysis_correlation
libgwplug_la_SOURCES += analysis/an_links.c
builtin_plugins      += gw_analysis_links
libgwplug_la_SOURCES += analysis/an_staleness.c
builtin_plugins      += gw_analysis_staleness
